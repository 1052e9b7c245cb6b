//! The `pintle` command: the server, with kube-apiserver's flag names and meanings, or a subcommand.

mod flags;
mod service_manager;
mod snapshot;
mod subscriber;

use flags::{Flags, Invocation};
use service_manager::ServiceManager;
use subscriber::subscriber;

use pintle::{RunError, TracingConfiguration};
use pintle_memcpy as _;
use pintle_profiling::heap::Sampled;
use pintle_schema::Schema;
use pintle_telemetry::{Exporter, Receiver, SpanLayer};
use std::{io::Write, process::ExitCode, time::Duration};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing_subscriber::{EnvFilter, util::SubscriberInitExt};

/// Trees consist of many small allocations, and threads free memory that others allocated: the C library's allocator
/// took a third of the time of a write. Huge pages are not used, since they would double an idle server's memory.
#[global_allocator]
static ALLOCATOR: Sampled<mimalloc::MiMalloc> = Sampled(mimalloc::MiMalloc);

/// The time from readiness to the unmapping of the code that only the start used.
const UNMAP_AFTER: Duration = Duration::from_millis(100);

/// Returns the thread's free memory, which the allocator caches per thread, to the system.
fn return_free_memory() {
    // SAFETY: `mi_collect` may be called at any time by any thread, and affects free memory only.
    #[expect(unsafe_code, reason = "the allocator's library has no safe way to say so")]
    unsafe {
        libmimalloc_sys::mi_collect(true);
    }
}

fn main() -> ExitCode {
    let flags = match flags::parse(std::env::args_os()) {
        Ok(Invocation::Serve(flags)) => *flags,
        Ok(Invocation::Snapshot(command)) => return run_snapshot(command),
        Ok(Invocation::Check(flags, problems)) => return check(*flags, problems),
        Ok(Invocation::Print(text)) => {
            print!("{text}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("Error: {error}");
            return ExitCode::FAILURE;
        }
    };
    // It takes milliseconds, in which the configuration is loaded and the store is opened. Without a thread, the first use
    // loads it.
    let _ = std::thread::Builder::new().name("schema".to_owned()).spawn(Schema::builtin);
    for warning in &flags.warnings {
        eprintln!("{warning}");
    }
    let options = &flags.options;
    let levels = options.log_levels.clone();
    let (configuration, refused) = match options.validate().and_then(|()| options.tracing.load()) {
        Ok(configuration) => (configuration, None),
        Err(error) => (None, Some(error)),
    };
    let (spans, traces) = match configuration {
        Some(configuration) => {
            let (layer, receiver) = SpanLayer::new(configuration.sampler);
            (Some(layer), Some((configuration, receiver)))
        }
        None => (None, None),
    };
    let _flush = match options.valid_logging().layer(&levels) {
        Ok((layer, flush)) => {
            subscriber(spans, layer, levels).init();
            flush
        }
        Err(error) => {
            eprintln!("pintle: {error}");
            return ExitCode::FAILURE;
        }
    };
    if let Some(error) = refused {
        tracing::error!(err = error, "command failed");
        return ExitCode::FAILURE;
    }
    let debugging = &flags.options.debugging;
    if debugging.profiling || debugging.debug_socket_path.is_some() {
        pintle_profiling::heap::enable();
    }
    pintle::raise_descriptor_limit();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("pintle: {error}");
            return ExitCode::FAILURE;
        }
    };
    pintle_offload::when_idle(return_free_memory);
    let ended = runtime.block_on(run(flags, traces));
    // Blocking work that a start or a shutdown left behind, when a signal ended it, is not waited for.
    runtime.shutdown_background();
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(err = %error, "command failed");
            ExitCode::from(error.exit_code())
        }
    }
}

fn run_snapshot(command: snapshot::SnapshotCommand) -> ExitCode {
    tracing_subscriber::fmt().with_env_filter(EnvFilter::new("warn")).with_writer(std::io::stderr).init();
    match command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pintle: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Tells the problems of flags, and of the files that they name.
fn check(flags: Flags, mut problems: Vec<String>) -> ExitCode {
    for warning in &flags.warnings {
        eprintln!("{warning}");
    }
    match pintle::check(flags.options) {
        Ok(found) => problems.extend(found),
        Err(error) => problems.push(error.to_string()),
    }
    for problem in &problems {
        eprintln!("pintle: {problem}");
    }
    match problems.is_empty() {
        true => {
            println!("the configuration is valid");
            ExitCode::SUCCESS
        }
        false => ExitCode::FAILURE,
    }
}

/// The tracing configuration, and the spans that wait to be exported.
type Traces = (TracingConfiguration, Receiver);

async fn run(flags: Flags, traces: Option<Traces>) -> Result<(), RunError> {
    let mut signals = Signals::install().map_err(signal_error)?;
    let service_manager = ServiceManager::from_environment();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let exporting = match traces {
        None => None,
        Some((configuration, receiver)) => {
            let resource =
                [("service.name", "apiserver".to_owned()), ("service.instance.id", pintle::instance_id())];
            let exporter = Exporter::new(receiver, &configuration.endpoint, &resource);
            let exporter = exporter.map_err(RunError::Options)?;
            Some(tokio::spawn(exporter.run(async { drop(stopped.await) })))
        }
    };
    let running = tokio::select! {
        running = pintle::start(flags.options) => running?,
        // The store may not answer for a long time. Nothing is served yet, and acknowledged writes are durable.
        () = signals.next() => {
            tracing::info!("stopping before the start is complete");
            service_manager.stopping();
            return Ok(());
        }
    };
    tracing::info!(address = %running.address(), "serving");
    let kubeconfig =
        std::fs::canonicalize(running.kubeconfig()).unwrap_or_else(|_| running.kubeconfig().clone());
    // Who reads it may be gone, or its disk full: the server serves nevertheless.
    let _ = writeln!(std::io::stdout(), "export KUBECONFIG={}", kubeconfig.display());
    service_manager.ready();
    let unmapping = tokio::spawn(async {
        tokio::time::sleep(UNMAP_AFTER).await;
        pintle::unmap_program_pages();
    });
    signals.next().await;
    unmapping.abort();
    tracing::info!("stopping");
    service_manager.stopping();
    let ended = tokio::select! {
        ended = running.shut_down() => ended,
        () = signals.next() => return Err(RunError::Interrupted),
    };
    drop(stop);
    if let Some(exporting) = exporting {
        // It takes a bounded time, and a failure is logged there.
        drop(exporting.await);
    }
    Ok(ended?)
}

/// The signals that stop the server.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Installs the handlers. From then on the signals end the process no more.
    fn install() -> std::io::Result<Signals> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next signal.
    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

fn signal_error(source: std::io::Error) -> RunError {
    RunError::Options(format!("installing signal handlers: {source}"))
}
