//! Runs the load generator.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use pintle_harness::{MASTER_TOKEN, Server, wait_for};

/// The last line before the cluster's life begins.
const LOADED: &str = "\"cluster: list and open a watch\"";
/// The time limit of a run beside the time that it counts: objects are made in it, and late events awaited.
const PATIENCE: Duration = Duration::from_secs(3600);

/// A cluster and what happens in it.
pub(super) struct Load {
    pub(super) nodes: u32,
    /// Pods that come and pods that go, a second.
    pub(super) churn: f64,
    pub(super) seconds: u32,
    /// A proxy on every node, not on every tenth.
    pub(super) is_full: bool,
}

/// A load generator that was started. It is killed when dropped.
pub(super) struct Generator {
    child: Child,
    output: PathBuf,
    patience: Duration,
}

impl Generator {
    pub(super) fn start(binary: &Path, server: &Server, load: &Load) -> Result<Generator, String> {
        let output = server.directory().join("loadgen.jsonl");
        let file = File::create(&output).map_err(|error| format!("{}: {error}", output.display()))?;
        let mut command = Command::new(binary);
        command
            .args(["--server", &server.url(), "--token", MASTER_TOKEN, "--pid", &server.pid().to_string()])
            .args(["--run", "cluster", "--nodes", &load.nodes.to_string()])
            .args(["--churn", &load.churn.to_string(), "--seconds", &load.seconds.to_string()])
            .args(load.is_full.then_some("--full"))
            .stdin(Stdio::null())
            .stdout(file);
        eprintln!("{} nodes, {} pods come and go a second", load.nodes, load.churn);
        let child = command.spawn().map_err(|error| format!("{}: {error}", binary.display()))?;
        let patience = PATIENCE + Duration::from_secs(load.seconds.into());
        Ok(Generator { child, output, patience })
    }

    /// Whether all objects are there, and all watches open.
    pub(super) fn is_loaded(&self) -> Result<bool, String> {
        Ok(self.told()?.contains(LOADED))
    }

    /// Waits for the end, at most for `time`.
    pub(super) fn ends_within(&mut self, time: Duration) -> Result<bool, String> {
        match wait_for("the load generator", time, || self.child.try_wait().transpose()) {
            Ok(status) => status.map(|_| true).map_err(|error| error.to_string()),
            Err(_) => Ok(false),
        }
    }

    /// Waits for the end, and returns the output.
    pub(super) fn wait(mut self) -> Result<String, String> {
        let what = "the load generator's end";
        let ended = wait_for(what, self.patience, || self.child.try_wait().transpose());
        let status: ExitStatus =
            ended.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        let told = self.told()?;
        if status.success() { Ok(told) } else { Err(format!("the load generator: {status}\n{told}")) }
    }

    fn told(&self) -> Result<String, String> {
        fs::read_to_string(&self.output).map_err(|error| format!("{}: {error}", self.output.display()))
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        // The process may have ended already, which is no error here.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
