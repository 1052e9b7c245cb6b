//! What the end-to-end tests share: a started server and the command-line clients against it.
//!
//! `cargo xtask test` sets the environment: `PINTLE_SERVER`, `PINTLE_KUBECTL`, `PINTLE_HELM`, `PINTLE_PYTHONPATH`,
//! `PINTLE_DEFINITIONS` and, where Debian's packages are to be had, `PINTLE_OLD_KUBECTL`.

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

/// How long a condition may take to hold.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// What `cargo xtask test` set.
///
/// # Errors
/// When the tests are run without it.
pub fn variable(name: &str) -> Result<OsString, Error> {
    env::var_os(name).ok_or_else(|| format!("{name} is not set: run `cargo xtask test e2e`").into())
}

/// How the server under test is started.
///
/// # Errors
/// When its binary is not named.
pub fn config() -> Result<Config, Error> {
    Ok(Config::new(PathBuf::from(variable("PINTLE_SERVER")?)))
}

/// A server on its embedded store.
///
/// # Errors
/// When it does not start.
pub fn start() -> Result<Server, Error> {
    Server::start(config()?)
}

/// The folder with custom resource definitions of real projects.
///
/// # Errors
/// When it is not named.
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
    /// When it is not installed.
    pub fn kubectl(server: &'a Server) -> Result<Cli<'a>, Error> {
        Ok(Cli { server, program: variable("PINTLE_KUBECTL")?.into() })
    }

    /// A kubectl that is years older.
    ///
    /// # Errors
    /// When it is not installed.
    pub fn old_kubectl(server: &'a Server) -> Result<Cli<'a>, Error> {
        Ok(Cli { server, program: variable("PINTLE_OLD_KUBECTL")?.into() })
    }

    /// helm.
    ///
    /// # Errors
    /// When it is not installed.
    pub fn helm(server: &'a Server) -> Result<Cli<'a>, Error> {
        Ok(Cli { server, program: variable("PINTLE_HELM")?.into() })
    }

    /// The command with its kubeconfig; its caches and settings are the test's own.
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

    /// Runs it and gives what it printed; its exit code must be 0.
    ///
    /// # Errors
    /// When it fails.
    pub fn run(&self, args: &[&str]) -> Result<String, Error> {
        succeeded(args, self.command(args).output()?)
    }

    /// Runs it with something on standard input.
    ///
    /// # Errors
    /// When it fails.
    pub fn feed(&self, args: &[&str], input: &str) -> Result<String, Error> {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input.as_bytes())?;
        }
        succeeded(args, child.wait_with_output()?)
    }

    /// Runs it; it must fail. Gives what it said about that.
    ///
    /// # Errors
    /// When it succeeds.
    pub fn fails(&self, args: &[&str]) -> Result<String, Error> {
        let output = self.command(args).output()?;
        if output.status.success() {
            return Err(format!("{args:?} should fail: {}", String::from_utf8_lossy(&output.stdout)).into());
        }
        Ok(String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// Runs it with `-o json`.
    ///
    /// # Errors
    /// When it fails or prints something else.
    pub fn json(&self, args: &[&str]) -> Result<Value, Error> {
        let args: Vec<&str> = args.iter().copied().chain(["-o", "json"]).collect();
        Ok(serde_json::from_str(&self.run(&args)?)?)
    }

    /// Waits until a definition, named with its type, is served.
    ///
    /// # Errors
    /// When that takes too long.
    pub fn wait_established(&self, definition: &str) -> Result<(), Error> {
        // `kubectl wait` gives up on a definition that has no conditions yet.
        let established = r#"jsonpath={.status.conditions[?(@.type=="Established")].status}"#;
        wait_for(definition, PATIENCE, || {
            let status = self.run(&["get", definition, "-o", established]).ok()?;
            (status == "True").then_some(())
        })
    }

    /// Writes a file into the test's directory and gives its path.
    ///
    /// # Errors
    /// When it cannot be written.
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
