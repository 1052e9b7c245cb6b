//! Runs Prometheus, which scrapes a server.

use crate::Result;
use pintle_e2e::{PATIENCE, variable};
use pintle_harness::{MASTER_TOKEN, Server, wait_for};
use serde_json::Value;
use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

/// A Prometheus that scrapes a server each second. It is killed when dropped.
pub(super) struct Prometheus {
    child: Child,
    address: String,
    log: PathBuf,
}

impl Prometheus {
    /// Starts Prometheus, with its files in a folder of the server's directory.
    pub(super) fn start(server: &Server, directory: &str, features: Option<&str>) -> Result<Prometheus> {
        let directory = server.directory().join(directory);
        fs::create_dir(&directory)?;
        let configuration = directory.join("prometheus.yml");
        fs::write(directory.join("token"), MASTER_TOKEN)?;
        let job = |name: &str, path: &str| {
            format!(
                "- job_name: {name}\n  metrics_path: {path}\n  scheme: https\n  scrape_interval: 1s\n  \
                 scrape_timeout: 1s\n  authorization: {{credentials_file: token}}\n  tls_config: {{ca_file: {ca}}}\n  \
                 static_configs: [{{targets: ['{address}']}}]\n",
                ca = server.ca_file().display(),
                address = server.address(),
            )
        };
        let jobs = job("apiserver", "/metrics") + &job("slis", "/metrics/slis");
        fs::write(&configuration, format!("scrape_configs:\n{jobs}"))?;
        // Free until the program listens.
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
        let log = directory.join("log");
        let program = PathBuf::from(variable("PINTLE_PROMETHEUS")?);
        let child = Command::new(&program)
            .arg(format!("--config.file={}", configuration.display()))
            .arg(format!("--storage.tsdb.path={}", directory.join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .args(features.map(|features| format!("--enable-feature={features}")))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(&log)?)
            .spawn()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        let prometheus = Prometheus { child, address, log };
        wait_for("Prometheus", PATIENCE, || prometheus.query("1").ok())
            .map_err(|error| format!("{error}; its log:\n{}", prometheus.log()))?;
        Ok(prometheus)
    }

    /// The number of series of an expression now.
    pub(super) fn count(&self, expression: &str) -> Result<usize> {
        let answer = self.query(expression)?;
        let result = answer.pointer("/data/result").and_then(Value::as_array);
        Ok(result.ok_or_else(|| format!("{expression}: {answer}"))?.len())
    }

    /// Stops it.
    ///
    /// # Errors
    /// When its log has warnings or errors: of samples that it refused, for instance.
    pub(super) fn stop(mut self) -> Result {
        self.child.kill()?;
        self.child.wait()?;
        let log = self.log();
        match log.lines().find(|line| line.contains("level=warn") || line.contains("level=error")) {
            Some(line) => Err(format!("Prometheus complains: {line}").into()),
            None => Ok(()),
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn query(&self, expression: &str) -> Result<Value> {
        let mut connection = TcpStream::connect(&self.address)?;
        let encoded: String = expression.bytes().map(|byte| format!("%{byte:02X}")).collect();
        // The response of HTTP/1.0 ends with the connection.
        write!(connection, "GET /api/v1/query?query={encoded} HTTP/1.0\r\n\r\n")?;
        let mut response = String::new();
        connection.read_to_string(&mut response)?;
        let (_head, body) = response.split_once("\r\n\r\n").ok_or("no body")?;
        Ok(serde_json::from_str(body)?)
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
