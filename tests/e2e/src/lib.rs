//! Shared code of the end-to-end tests: a started server and command-line clients for it.
//!
//! `cargo xtask test` sets the environment: `PINTLE_SERVER`, `PINTLE_EXTENSION_SERVER`, `PINTLE_KUBECTL`, `PINTLE_HELM`, `PINTLE_PYTHONPATH`,
//! `PINTLE_DEFINITIONS`, `PINTLE_PROMETHEUS` and, where Debian's packages are available, `PINTLE_OLD_KUBECTL`.

use pintle_harness::{Config, Error, Server, wait_for};
use serde_json::Value;
use std::{
    env,
    ffi::OsString,
    fs,
    io::Write,
    path::PathBuf,
    process::{Command, Output, Stdio},
    time::Duration,
};

/// The timeout of a wait for a condition.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// An environment variable that `cargo xtask test` sets.
///
/// # Errors
/// When the variable is not set.
pub fn variable(name: &str) -> Result<OsString, Error> {
    env::var_os(name).ok_or_else(|| format!("{name} is not set: run `cargo xtask test e2e`").into())
}

/// The configuration of the server under test.
///
/// # Errors
/// When `PINTLE_SERVER` is not set.
pub fn config() -> Result<Config, Error> {
    Ok(Config::new(PathBuf::from(variable("PINTLE_SERVER")?)))
}

/// Starts a server on its embedded store.
///
/// # Errors
/// When the server does not start.
pub fn start() -> Result<Server, Error> {
    Server::start(config()?)
}

/// The folder with custom resource definitions of real projects.
///
/// # Errors
/// When `PINTLE_DEFINITIONS` is not set.
pub fn definitions() -> Result<PathBuf, Error> {
    Ok(variable("PINTLE_DEFINITIONS")?.into())
}

/// A command-line client for one server.
pub struct Cli<'a> {
    server: &'a Server,
    program: PathBuf,
}

impl<'a> Cli<'a> {
    /// kubectl of the served version.
    ///
    /// # Errors
    /// When the client is not installed.
    pub fn kubectl(server: &'a Server) -> Result<Cli<'a>, Error> {
        Ok(Cli { server, program: variable("PINTLE_KUBECTL")?.into() })
    }

    /// A kubectl that is years older.
    ///
    /// # Errors
    /// When the client is not installed.
    pub fn old_kubectl(server: &'a Server) -> Result<Cli<'a>, Error> {
        Ok(Cli { server, program: variable("PINTLE_OLD_KUBECTL")?.into() })
    }

    /// helm.
    ///
    /// # Errors
    /// When the client is not installed.
    pub fn helm(server: &'a Server) -> Result<Cli<'a>, Error> {
        Ok(Cli { server, program: variable("PINTLE_HELM")?.into() })
    }

    /// The command with the server's kubeconfig, and with caches and settings in the test's directory.
    pub fn command(&self, args: &[&str]) -> Command {
        let home = self.server.directory();
        let mut command = Command::new(&self.program);
        command
            .args(args)
            .env("KUBECONFIG", self.server.kubeconfig())
            .env("HOME", home)
            .env_remove("XDG_CACHE_HOME")
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_DATA_HOME")
            .current_dir(home)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs the client and returns its output; its exit code must be 0.
    ///
    /// # Errors
    /// When the client fails.
    pub fn run(&self, args: &[&str]) -> Result<String, Error> {
        succeeded(args, self.command(args).output()?)
    }

    /// Runs the client with a text on standard input.
    ///
    /// # Errors
    /// When the client fails.
    pub fn feed(&self, args: &[&str], input: &str) -> Result<String, Error> {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input.as_bytes())?;
        }
        succeeded(args, child.wait_with_output()?)
    }

    /// Runs the client, which must fail, and returns its error message.
    ///
    /// # Errors
    /// When the client succeeds.
    pub fn fails(&self, args: &[&str]) -> Result<String, Error> {
        let output = self.command(args).output()?;
        if output.status.success() {
            return Err(format!("{args:?} should fail: {}", String::from_utf8_lossy(&output.stdout)).into());
        }
        Ok(String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// Runs the client with `-o json`.
    ///
    /// # Errors
    /// When the client fails, or its output is not JSON.
    pub fn json(&self, args: &[&str]) -> Result<Value, Error> {
        let args: Vec<&str> = args.iter().copied().chain(["-o", "json"]).collect();
        Ok(serde_json::from_str(&self.run(&args)?)?)
    }

    /// Waits until a definition, named with its type, is served.
    ///
    /// # Errors
    /// When the definition is not served in time.
    pub fn wait_established(&self, definition: &str) -> Result<(), Error> {
        // `kubectl wait` gives up on a definition that has no conditions yet.
        let established = r#"jsonpath={.status.conditions[?(@.type=="Established")].status}"#;
        wait_for(definition, PATIENCE, || {
            let status = self.run(&["get", definition, "-o", established]).ok()?;
            (status == "True").then_some(())
        })
    }

    /// Writes a file into the test's directory and returns its path.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn file(&self, name: &str, text: &str) -> Result<String, Error> {
        let path = self.server.directory().join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, text)?;
        Ok(path.display().to_string())
    }
}

fn succeeded(args: &[&str], output: Output) -> Result<String, Error> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(format!("{args:?}: {}\n{errors}{text}", output.status).into())
}
