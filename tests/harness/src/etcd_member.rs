//! Runs one etcd server as a child process.

use crate::{Error, wait_for};
use serde_json::{Value, json};
use std::{
    fs,
    io::{Read, Write},
    net::{Ipv4Addr, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

/// The timeout of a single request of the harness.
const ANSWER: Duration = Duration::from_secs(10);

/// The folder of a member's files below its directory, and that of their copy.
const DATA: &str = "data";
const KEPT_DATA: &str = "kept";

/// The configuration of each start of a member.
pub(crate) struct Setup {
    pub(crate) binary: PathBuf,
    pub(crate) name: String,
    pub(crate) directory: PathBuf,
    pub(crate) client: u16,
    pub(crate) peer: u16,
    pub(crate) metrics: u16,
    pub(crate) tls: bool,
    pub(crate) flags: Vec<String>,
}

/// A member of an [`Etcd`](crate::Etcd) cluster.
pub struct Member {
    setup: Setup,
    /// `None` while the member is killed.
    child: Option<Child>,
}

impl Member {
    pub(crate) fn start(setup: Setup) -> Result<Member, Error> {
        fs::create_dir_all(&setup.directory)?;
        let mut member = Member { setup, child: None };
        member.restart()?;
        Ok(member)
    }

    /// Starts a killed member on its files. It may not be ready yet when this returns.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn restart(&mut self) -> Result<(), Error> {
        let setup = &self.setup;
        let log = fs::File::options().create(true).append(true).open(self.log_path())?;
        let scheme = if setup.tls { "https" } else { "http" };
        let url = |flag: &str, scheme: &str, port: u16| format!("--{flag}={scheme}://127.0.0.1:{port}");
        let child = Command::new(&setup.binary)
            .arg(format!("--name={}", setup.name))
            .arg(format!("--data-dir={}", setup.directory.join(DATA).display()))
            .arg(url("listen-client-urls", scheme, setup.client))
            .arg(url("advertise-client-urls", scheme, setup.client))
            .arg(url("listen-peer-urls", "http", setup.peer))
            .arg(url("initial-advertise-peer-urls", "http", setup.peer))
            .arg(url("listen-metrics-urls", "http", setup.metrics))
            .args(["--logger=zap", "--log-outputs=stderr", "--log-level=warn"])
            .args(&setup.flags)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .map_err(|error| format!("{}: {error}", setup.binary.display()))?;
        self.child = Some(child);
        Ok(())
    }

    /// Stops the member gracefully, so that every acknowledged write is on disk. Before etcd 3.5.5, killing the only
    /// member of a cluster may lose some (<https://github.com/etcd-io/etcd/issues/14370>). The member can be restarted.
    ///
    /// # Errors
    /// When the member does not stop.
    pub fn stop(&mut self) -> Result<(), Error> {
        self.signal("-TERM")?;
        if let Some(mut child) = self.child.take() {
            child.wait()?;
        }
        Ok(())
    }

    /// Kills the member, as a crash does. It can be restarted.
    ///
    /// # Errors
    /// When the process cannot be killed.
    pub fn kill(&mut self) -> Result<(), Error> {
        if let Some(mut child) = self.child.take() {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }

    /// Copies the files of a killed member.
    ///
    /// # Errors
    /// When the files cannot be copied.
    pub fn keep_data(&self) -> Result<(), Error> {
        let (data, kept) = (self.setup.directory.join(DATA), self.setup.directory.join(KEPT_DATA));
        run("cp", &[Path::new("-r"), &data, &kept])
    }

    /// Replaces the files of a killed member by the copy of [`Member::keep_data`].
    ///
    /// # Errors
    /// When there is no copy.
    pub fn restore_data(&self) -> Result<(), Error> {
        let (data, kept) = (self.setup.directory.join(DATA), self.setup.directory.join(KEPT_DATA));
        fs::remove_dir_all(&data)?;
        Ok(fs::rename(kept, data)?)
    }

    /// Suspends the process: it keeps its connections and sends no responses.
    ///
    /// # Errors
    /// When the signal cannot be sent.
    pub fn pause(&self) -> Result<(), Error> {
        self.signal("-STOP")
    }

    /// Resumes a paused process.
    ///
    /// # Errors
    /// When the signal cannot be sent.
    pub fn resume(&self) -> Result<(), Error> {
        self.signal("-CONT")
    }

    fn signal(&self, signal: &str) -> Result<(), Error> {
        let child = self.child.as_ref().ok_or("the member does not run")?;
        run("kill", &[Path::new(signal), Path::new(&child.id().to_string())])
    }

    /// The client URL.
    pub fn url(&self) -> String {
        let scheme = if self.setup.tls { "https" } else { "http" };
        format!("{scheme}://127.0.0.1:{}", self.setup.client)
    }

    /// The port of the client URL.
    pub fn port(&self) -> u16 {
        self.setup.client
    }

    /// The process id, while the member runs.
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// The log of the server, over all restarts.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn log(&self) -> Result<String, Error> {
        Ok(fs::read_to_string(self.log_path())?)
    }

    /// Calls etcd's API through its JSON gateway, such as `/v3/kv/range`, independently of the engine under test. Keys
    /// and values are in base64, numbers in strings.
    ///
    /// # Errors
    /// When there is no response, or an error; and in a cluster with TLS, where the gateway is disabled.
    pub fn call(&self, path: &str, body: &Value) -> Result<Value, Error> {
        let (status, answer) = request(self.setup.client, "POST", path, &body.to_string())?;
        if status != 200 {
            return Err(format!("{path}: {status}: {answer}").into());
        }
        Ok(serde_json::from_str(&answer)?)
    }

    /// The member's status, with the id of the cluster's leader.
    ///
    /// # Errors
    /// As [`Member::call`].
    pub fn status(&self) -> Result<Value, Error> {
        self.call("/v3/maintenance/status", &json!({}))
    }

    pub(crate) fn is_started(&self) -> bool {
        self.child.is_some()
    }

    pub(crate) fn wait_ready(&mut self, patience: Duration) -> Result<(), Error> {
        let port = self.setup.metrics;
        let child = self.child.as_mut().ok_or("the member does not run")?;
        let ready = wait_for("an etcd member to be healthy", patience, || {
            if let Ok(Some(status)) = child.try_wait() {
                return Some(Err(format!("etcd ended with {status}")));
            }
            let healthy = request(port, "GET", "/health", "").is_ok_and(|(status, _)| status == 200);
            healthy.then_some(Ok(()))
        });
        match ready {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(format!("{error}; its log:\n{}", self.log()?).into()),
            Err(error) => Err(format!("{error}; its log:\n{}", self.log()?).into()),
        }
    }

    fn log_path(&self) -> PathBuf {
        self.setup.directory.join("log")
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // The process may have ended already, which is no error here.
        let _ = self.kill();
    }
}

fn run(program: &str, arguments: &[&Path]) -> Result<(), Error> {
    let status = Command::new(program).args(arguments).status()?;
    if status.success() { Ok(()) } else { Err(format!("{program} {arguments:?} failed").into()) }
}

/// Sends one request on a connection of its own; returns status and body.
fn request(port: u16, method: &str, path: &str, body: &str) -> Result<(u16, String), Error> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(ANSWER))?;
    // HTTP/1.0, so that the body comes in one piece and the connection ends with it.
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("half an answer")?;
    let status = head.split(' ').nth(1).ok_or("no status")?.parse()?;
    Ok((status, body.to_owned()))
}
