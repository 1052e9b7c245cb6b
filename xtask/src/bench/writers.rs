//! Measures creates by 16 and by 64 writers, on the embedded store and on etcd: the engines alone, then whole servers
//! over HTTPS.
//!
//! All measurements are in one run and below one temporary directory (`TMPDIR`), so on one disk, and every store syncs
//! the writes that it acknowledges. Over HTTPS the load generator and TLS take most of a small machine, for both
//! servers alike: there the CPU time of the server processes is more significant than the throughput.

use std::path::Path;
use std::process::Command;

use pintle_harness::{Config, Etcd, EtcdConfig, MASTER_TOKEN, Server};
use serde_json::Value;

use crate::{task, tools};

const WRITERS: [u32; 2] = [16, 64];
/// The number of measurements of each server, each on an empty store; the median is reported.
const ROUNDS: usize = 3;

struct Request {
    objects: u32,
    engines: bool,
    servers: bool,
}

pub(crate) fn run(root: &Path, args: &[&str]) -> Result<(), String> {
    let request = parse(args)?;
    let etcd = tools::etcd(root)?.current;
    if request.engines {
        let mut command = task::cargo(root);
        command.args(["bench", "--package", "pintle-storage", "--bench", "writers"]);
        task::run(command.env("PINTLE_ETCD", &etcd))?;
    }
    if request.servers {
        servers(root, &etcd, &request)?;
    }
    Ok(())
}

fn parse(args: &[&str]) -> Result<Request, String> {
    let mut request = Request { objects: 12_000, engines: true, servers: true };
    for arg in args {
        match arg.split_once('=') {
            Some(("--objects", value)) => {
                request.objects = value.parse().map_err(|error| format!("--objects: {error}"))?;
            }
            Some(("--of", "engines")) => request.servers = false,
            Some(("--of", "servers")) => request.engines = false,
            _ => return Err(format!("{arg}: the flags are --objects=N and --of=engines|servers")),
        }
    }
    Ok(request)
}

/// One server's creates.
struct Outcome {
    rate: f64,
    median_ms: f64,
    slow_ms: f64,
    cpu_us: f64,
}

fn servers(root: &Path, etcd: &Path, request: &Request) -> Result<(), String> {
    let binary = task::build_server(root, true)?;
    let load_generator = super::load_generator(root)?;
    println!("| writers | server | creates/s | p50 | p99 | CPU a create (server and etcd) |");
    println!("|---|---|---|---|---|---|");
    for writers in WRITERS {
        let (mut embedded, mut on_etcd) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let config = Config::new(&binary).flag("--storage-backend=embedded");
            embedded.push(measure(&load_generator, config, None, writers, request)?);
            let cluster = Etcd::launch(EtcdConfig::new(etcd)).map_err(|error| error.to_string())?;
            let config = Config::new(&binary).flag(format!("--etcd-servers={}", cluster.urls()));
            on_etcd.push(measure(&load_generator, config, Some(&cluster), writers, request)?);
        }
        let (embedded, on_etcd) = (median(embedded)?, median(on_etcd)?);
        for (name, outcome) in [("embedded", &embedded), ("on etcd", &on_etcd)] {
            let Outcome { rate, median_ms, slow_ms, cpu_us } = outcome;
            println!(
                "| {writers} | {name} | {rate:.0} | {median_ms:.2} ms | {slow_ms:.2} ms | {cpu_us:.0} us |"
            );
        }
        println!(
            "| {writers} | ratio | {:.1} | | | {:.1} |",
            embedded.rate / on_etcd.rate,
            on_etcd.cpu_us / embedded.cpu_us
        );
    }
    Ok(())
}

fn measure(
    load_generator: &Path,
    config: Config,
    cluster: Option<&Etcd>,
    writers: u32,
    request: &Request,
) -> Result<Outcome, String> {
    let text = |error: pintle_harness::Error| error.to_string();
    let server = Server::start(config).map_err(text)?;
    let mut command = Command::new(load_generator);
    command.args(["--server", &server.url(), "--token", MASTER_TOKEN, "--run", "create"]);
    command.args(["--concurrency", &writers.to_string(), "--objects", &request.objects.to_string()]);
    command.args(["--pid", &server.pid().to_string()]);
    if let Some(cluster) = cluster {
        let pid = cluster.member(0).map_err(text)?.pid().ok_or("etcd is not running")?;
        command.args(["--pid", &pid.to_string()]);
    }
    let output = task::output(&mut command)?;
    let mut results = output.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let result = results
        .rfind(|result| result.get("workload").and_then(Value::as_str) == Some("create pods"))
        .ok_or_else(|| format!("the load generator told nothing:\n{output}"))?;
    let number = |key: &str| result.get(key).and_then(Value::as_f64).unwrap_or_default();
    if number("errors") > 0.0 {
        return Err(format!("creates failed: {}", result.get("first_error").unwrap_or(&Value::Null)));
    }
    Ok(Outcome {
        rate: number("ops_per_s"),
        median_ms: number("p50_ms"),
        slow_ms: number("p99_ms"),
        cpu_us: number("cpu_us_per_op"),
    })
}

fn median(mut outcomes: Vec<Outcome>) -> Result<Outcome, String> {
    outcomes.sort_by(|one, other| one.rate.total_cmp(&other.rate));
    let middle = outcomes.len() / 2;
    outcomes.into_iter().nth(middle).ok_or_else(|| "nothing was measured".to_owned())
}
