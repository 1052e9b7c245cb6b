//! Runs the server as a child process.

use crate::{Client, Error, Etcd, EtcdConfig, reference, wait_for, with_hostname};
use std::{
    fs,
    io::{BufRead, BufReader},
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// The token of a member of `system:masters`.
pub const MASTER_TOKEN: &str = "master-token-that-no-log-may-show";
/// The token of a user without groups.
pub const OTHER_TOKEN: &str = "other-token-that-no-log-may-show";
/// The name of that user.
pub const OTHER_USER: &str = "stranger";

/// The timeout of a start and of a shutdown: long, since debug builds on a busy machine are slow.
const PATIENCE: Duration = Duration::from_secs(60);

/// The configuration of a server.
#[derive(Debug, Clone)]
pub struct Config {
    /// The `pintle` binary.
    pub binary: PathBuf,
    /// Flags in addition to those of the harness.
    pub flags: Vec<String>,
    /// The etcd binary beside a kube-apiserver.
    etcd: Option<PathBuf>,
    /// The name of the host; `None` for that of the machine.
    hostname: Option<String>,
    /// The directory of certificates; `None` is below that of the server.
    cert_dir: Option<PathBuf>,
}

impl Config {
    /// The binary without further flags.
    pub fn new(binary: impl Into<PathBuf>) -> Config {
        Config { binary: binary.into(), flags: Vec::new(), etcd: None, hostname: None, cert_dir: None }
    }

    /// A kube-apiserver with an etcd of its own, to compare with.
    pub fn reference(kube_apiserver: impl Into<PathBuf>, etcd: impl Into<PathBuf>) -> Config {
        Config { etcd: Some(etcd.into()), ..Config::new(kube_apiserver) }
    }

    /// Runs the server on a host of this name, from which its identity follows.
    #[must_use]
    pub fn hostname(mut self, name: impl Into<String>) -> Config {
        self.hostname = Some(name.into());
        self
    }

    /// Keeps the generated certificates in this directory. Servers with the same directory trust each other.
    #[must_use]
    pub fn cert_dir(mut self, directory: impl Into<PathBuf>) -> Config {
        let directory = directory.into();
        self.flags.push(format!("--cert-dir={}", directory.display()));
        self.cert_dir = Some(directory);
        self
    }

    /// Adds a flag.
    #[must_use]
    pub fn flag(mut self, flag: impl Into<String>) -> Config {
        self.flags.push(flag.into());
        self
    }
}

/// A started server. It is killed when dropped.
pub struct Server {
    config: Config,
    directory: TempDir,
    child: Child,
    address: SocketAddr,
    ready_after: Duration,
    _etcd: Option<Etcd>,
}

impl Server {
    /// Starts a server on an empty directory and waits until it is ready.
    ///
    /// # Errors
    /// When it does not start; the message ends with its log.
    pub fn start(mut config: Config) -> Result<Server, Error> {
        let directory = TempDir::with_prefix("pintle-test-")?;
        fs::write(
            directory.path().join("tokens.csv"),
            format!("{MASTER_TOKEN},admin,1,\"system:masters\"\n{OTHER_TOKEN},{OTHER_USER},2\n"),
        )?;
        let etcd = config.etcd.as_ref().map(|binary| Etcd::launch(EtcdConfig::new(binary))).transpose()?;
        if let Some(etcd) = &etcd {
            config.flags.extend(reference::flags(directory.path(), etcd)?);
        }
        let (child, address, ready_after) = launch(&config, directory.path())?;
        Ok(Server { config, directory, child, address, ready_after, _etcd: etcd })
    }

    /// Starts the server again on the same directory. Its process must have ended.
    ///
    /// # Errors
    /// When it does not start.
    pub fn restart(&mut self) -> Result<(), Error> {
        (self.child, self.address, self.ready_after) = launch(&self.config, self.directory.path())?;
        Ok(())
    }

    /// The time from the start of the process until `/readyz` answered `ok`.
    pub fn ready_after(&self) -> Duration {
        self.ready_after
    }

    /// The listening address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `https://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A directory for the test's files; the server's own directory is below it.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The administrator's kubeconfig that the server wrote.
    pub fn kubeconfig(&self) -> PathBuf {
        self.directory.path().join("data/admin.kubeconfig")
    }

    /// The certificate of the server's own certificate authority.
    pub fn ca_file(&self) -> PathBuf {
        ca_file(&self.config, self.directory.path())
    }

    /// The server's standard output and error, over all restarts.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn log(&self) -> Result<String, Error> {
        Ok(fs::read_to_string(self.directory.path().join("log"))?)
    }

    /// A client with [`MASTER_TOKEN`].
    ///
    /// # Errors
    /// When the certificate of the server's authority cannot be read.
    pub fn client(&self) -> Result<Client, Error> {
        Ok(self.anonymous_client()?.with_token(MASTER_TOKEN))
    }

    /// A client without credentials.
    ///
    /// # Errors
    /// When the certificate of the server's authority cannot be read.
    pub fn anonymous_client(&self) -> Result<Client, Error> {
        Client::new(self.address, &fs::read(self.ca_file())?)
    }

    /// Sends SIGTERM to the server, as a service manager does.
    ///
    /// # Errors
    /// When the signal cannot be sent.
    pub fn terminate(&self) -> Result<(), Error> {
        // The standard library sends SIGKILL only, and one call does not justify a dependency.
        let status = Command::new("kill").args(["-TERM", &self.pid().to_string()]).status()?;
        if status.success() { Ok(()) } else { Err("kill -TERM failed".into()) }
    }

    /// Kills the server, as a crash does.
    ///
    /// # Errors
    /// When the process cannot be killed.
    pub fn kill(&mut self) -> Result<(), Error> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Waits until the process has ended by itself: with watches open it ends after a minute.
    ///
    /// # Errors
    /// When it does not end in time.
    pub fn wait_for_end(&mut self) -> Result<ExitStatus, Error> {
        wait_for("the server's end", 2 * PATIENCE, || self.child.try_wait().ok().flatten())
    }

    /// Whether the process is running.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// The CPU time of the process on all cores, with the precision of the kernel: hundredths of a second.
    ///
    /// # Errors
    /// When `/proc` cannot be read.
    pub fn cpu_time(&self) -> Result<Duration, Error> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid()))?;
        // The name in parentheses may have any characters; the times are the 14th and 15th of the fields.
        let fields = stat.rsplit_once(") ").ok_or("no name")?.1.split(' ').skip(11).take(2);
        let ticks: Result<Vec<u64>, _> = fields.map(str::parse).collect();
        Ok(Duration::from_millis(10 * ticks?.iter().sum::<u64>()))
    }

    /// Resets the kernel's record of the process's peak memory (`VmHWM`).
    ///
    /// # Errors
    /// When the kernel does not permit it.
    pub fn reset_peak_memory(&self) -> Result<(), Error> {
        /// The value that resets the peak, see proc(5).
        const PEAK: &str = "5";
        Ok(fs::write(format!("/proc/{}/clear_refs", self.pid()), PEAK)?)
    }

    /// A number of kilobytes in `/proc/PID/status`, such as `VmRSS`.
    ///
    /// # Errors
    /// When `/proc` cannot be read.
    pub fn memory_kb(&self, name: &str) -> Result<u64, Error> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let number = line.and_then(|line| line.split_whitespace().next()).ok_or("no such number")?;
        Ok(number.parse()?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process may have ended already, which is no error here.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn launch(config: &Config, directory: &Path) -> Result<(Child, SocketAddr, Duration), Error> {
    let log_path = directory.join("log");
    let log = fs::File::options().create(true).append(true).open(&log_path)?;
    let before = fs::read_to_string(&log_path)?.len();
    let started = Instant::now();
    let mut command = match &config.hostname {
        Some(name) => with_hostname(name, &config.binary),
        None => Command::new(&config.binary),
    };
    command.arg("--token-auth-file").arg(directory.join("tokens.csv")).arg("--bind-address=127.0.0.1");
    if config.etcd.is_none() {
        command.arg("--data-dir").arg(directory.join("data")).arg("--secure-port=0");
    }
    let mut child = command
        .args(&config.flags)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .map_err(|error| format!("{}: {error}", config.binary.display()))?;
    let outcome = ready(&mut child, config, directory, &log_path, before);
    match outcome {
        Ok(address) => Ok((child, address, started.elapsed())),
        Err(error) => {
            let _ = child.kill();
            let _ = child.wait();
            Err(format!("{error}; the server's log:\n{}", fs::read_to_string(&log_path)?).into())
        }
    }
}

fn ca_file(config: &Config, directory: &Path) -> PathBuf {
    let own = directory.join("data/certs");
    config.cert_dir.as_deref().unwrap_or(&own).join(if config.etcd.is_some() {
        "apiserver.crt"
    } else {
        "ca.crt"
    })
}

fn ready(
    child: &mut Child,
    config: &Config,
    directory: &Path,
    log: &Path,
    skip: usize,
) -> Result<SocketAddr, Error> {
    let port = wait_for("the port the server listens on", PATIENCE, || {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(Err(format!("the server ended with {status}")));
        }
        listening(log, skip).map(Ok)
    })??;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let client = Client::new(address, &fs::read(ca_file(config, directory))?)?.with_token(MASTER_TOKEN);
    wait_for("/readyz", PATIENCE, || client.get("/readyz").ok().filter(|response| response.status == 200))?;
    Ok(address)
}

/// The port in the log line with the listening address: of `serving` or `Serving securely`.
fn listening(log: &Path, skip: usize) -> Option<u16> {
    let text = fs::read(log).ok()?;
    let lines = BufReader::new(text.get(skip..)?).lines();
    lines.map_while(Result::ok).find_map(|line| {
        let (_, rest) = line.split_once("erving")?;
        // The address is the last word of the line, in the text format and in JSON.
        let digits = rest.trim_end().trim_end_matches(['"', '}']).rsplit(':').next()?;
        digits.parse().ok()
    })
}
