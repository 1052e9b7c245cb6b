//! One etcd server as a child process.

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

/// How long an etcd may take to answer a single request of the harness.
const ANSWER: Duration = Duration::from_secs(10);

/// Where its files are below its directory, and where a copy of them is kept.
const DATA: &str = "data";
const KEPT_DATA: &str = "kept";

/// How a member is started, each time.
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
    /// `None` while it is killed.
    child: Option<Child>,
}

impl Member {
    pub(crate) fn start(setup: Setup) -> Result<Member, Error> {
        fs::create_dir_all(&setup.directory)?;
        let mut member = Member { setup, child: None };
        member.restart()?;
        Ok(member)
    }

    /// Starts a member that was killed, on the files it left. It need not be ready yet when this returns.
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

    /// Ends the member in order: it has written everything that it acknowledged, which one that is alone and is killed may
    /// not have before etcd 3.5.5 (<https://github.com/etcd-io/etcd/issues/14370>). It can be restarted.
    ///
    /// # Errors
    /// When it does not end.
    pub fn stop(&mut self) -> Result<(), Error> {
        self.signal("-TERM")?;
        if let Some(mut child) = self.child.take() {
            child.wait()?;
        }
        Ok(())
    }

    /// Ends the member with no chance to finish anything, as a crash does. It can be restarted.
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

    /// Keeps a copy of the files of a member that was killed.
    ///
    /// # Errors
    /// When they cannot be copied.
    pub fn keep_data(&self) -> Result<(), Error> {
        let (data, kept) = (self.setup.directory.join(DATA), self.setup.directory.join(KEPT_DATA));
        run("cp", &[Path::new("-r"), &data, &kept])
    }

    /// Puts the copy of [`Member::keep_data`] in place of the files of a member that was killed.
    ///
    /// # Errors
    /// When there is none.
    pub fn restore_data(&self) -> Result<(), Error> {
        let (data, kept) = (self.setup.directory.join(DATA), self.setup.directory.join(KEPT_DATA));
        fs::remove_dir_all(&data)?;
        Ok(fs::rename(kept, data)?)
    }

    /// Stops the process where it is: it holds its connections and answers nobody.
    ///
    /// # Errors
    /// When the signal cannot be sent.
    pub fn pause(&self) -> Result<(), Error> {
        self.signal("-STOP")
    }

    /// Lets a paused process go on.
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

    /// Its client URL.
    pub fn url(&self) -> String {
        let scheme = if self.setup.tls { "https" } else { "http" };
        format!("{scheme}://127.0.0.1:{}", self.setup.client)
    }

    /// The port of its client URL.
    pub fn port(&self) -> u16 {
        self.setup.client
    }

    /// The process, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// What the server wrote, of all its lives.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn log(&self) -> Result<String, Error> {
        Ok(fs::read_to_string(self.log_path())?)
    }

    /// Calls etcd's API by its JSON gateway, such as `/v3/kv/range`: by another way than the engine under test. Keys
    /// and values are in base64, numbers in strings.
    ///
    /// # Errors
    /// When it is not answered, or with an error; and where certificates are asked for, since there the gateway is off.
    pub fn call(&self, path: &str, body: &Value) -> Result<Value, Error> {
        let (status, answer) = request(self.setup.client, "POST", path, &body.to_string())?;
        if status != 200 {
            return Err(format!("{path}: {status}: {answer}").into());
        }
        Ok(serde_json::from_str(&answer)?)
    }

    /// What the member says of itself and of the cluster's leader.
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
        // It may have ended already, which is no error here.
        let _ = self.kill();
    }
}

fn run(program: &str, arguments: &[&Path]) -> Result<(), Error> {
    let status = Command::new(program).args(arguments).status()?;
    if status.success() { Ok(()) } else { Err(format!("{program} {arguments:?} failed").into()) }
}

/// One request on a connection of its own: status and body.
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
