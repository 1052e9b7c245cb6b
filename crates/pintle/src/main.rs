//! The `pintle` command: the server, whose flags have kube-apiserver's names and meanings, or one of the subcommands.

mod flags;
mod snapshot;

use flags::Invocation;

use pintle::RunError;
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// Trees are made of many small allocations, and threads free what others allocated: the C library's allocator took a
/// third of the time of a write. Huge pages are left alone, for they would double an idle server's memory.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let flags = match flags::parse() {
        Invocation::Serve(flags) => *flags,
        Invocation::Snapshot(command) => return snapshot(command),
    };
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(flags.log_filter()))
        .with_writer(std::io::stderr)
        .init();
    for warning in &flags.warnings {
        tracing::warn!("{warning}");
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("pintle: {error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(run(flags)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pintle: {error}");
            ExitCode::FAILURE
        }
    }
}

fn snapshot(command: snapshot::SnapshotCommand) -> ExitCode {
    tracing_subscriber::fmt().with_env_filter(EnvFilter::new("warn")).with_writer(std::io::stderr).init();
    match command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pintle: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(flags: flags::Flags) -> Result<(), RunError> {
    let mut terminate = signal(SignalKind::terminate()).map_err(signal_error)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(signal_error)?;
    let running = pintle::start(flags.options).await?;
    tracing::info!(address = %running.address(), "serving");
    let kubeconfig =
        std::fs::canonicalize(running.kubeconfig()).unwrap_or_else(|_| running.kubeconfig().clone());
    println!("export KUBECONFIG={}", kubeconfig.display());
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::info!("stopping");
    running.stop().await?;
    Ok(())
}

fn signal_error(source: std::io::Error) -> RunError {
    RunError::Options(format!("installing signal handlers: {source}"))
}
