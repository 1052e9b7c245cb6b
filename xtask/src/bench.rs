//! Measures a release build with the load generator and compares it with the reference server and the goals.
//!
//! CPU per operation is the figure to compare: throughput depends on the machine's other load. The reference's
//! numbers were taken on another machine of the same size, so ratios are indications; absolute claims need both
//! servers measured in one run.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use pintle_harness::{Config, MASTER_TOKEN, Server};
use serde_json::Value;

use crate::{shared, task};

pub(crate) mod admission;
pub(crate) mod aggregation;
mod bare_relay;
pub(crate) mod cluster;
pub(crate) mod connections;
pub(crate) mod definitions;
pub(crate) mod instructions;
pub(crate) mod writers;

/// The load generator's name of a workload, its name in the report, and the goal in microseconds of CPU.
struct Workload {
    run: &'static str,
    reported: &'static str,
    goal_us: Option<f64>,
}

const fn workload(run: &'static str, reported: &'static str, goal_us: Option<f64>) -> Workload {
    Workload { run, reported, goal_us }
}

/// The workloads in their order; the last one deletes the pods of the first.
const WORKLOADS: &[Workload] = &[
    workload("create", "create pods", Some(180.0)),
    workload("get", "get pod", Some(22.0)),
    workload("list", "list all pods", Some(18_000.0)),
    workload("listrv0", "listrv0 all pods", None),
    workload("listsel", "list by label (2%)", Some(300.0)),
    workload("listnode", "list by node (1%)", Some(100.0)),
    workload("listpage", "list in pages of 500", Some(18_000.0)),
    workload("update", "get+update pod", Some(280.0)),
    workload("patch", "patch pod status", Some(180.0)),
    workload("apply", "server-side apply", Some(70.0)),
    workload("watch", "watch all", Some(400.0)),
    workload("fanout", "watch fan-out (1 of 100 nodes each)", Some(250.0)),
    workload("crd", "create custom resources", Some(130.0)),
    workload("delete", "delete pods", Some(170.0)),
];

const STARTS: usize = 5;
/// The time from readiness to the measurement of idle memory. The Service `kubernetes` is reconciled every ten seconds, and
/// its code is resident from then on.
const IDLE_AFTER: Duration = Duration::from_secs(15);
const GOAL_READY: Duration = Duration::from_millis(60);
const GOAL_READY_AGAIN: Duration = Duration::from_millis(20);
const GOAL_IDLE_MB: f64 = 28.0;
const GOAL_FINAL_MB: f64 = 100.0;

struct Request {
    objects: u32,
    seconds: u32,
    watchers: u32,
    storage: String,
    run: Vec<String>,
    /// A server that is built; `None` builds it.
    binary: Option<PathBuf>,
}

pub(crate) fn run(root: &Path, args: &[&str]) -> Result<(), String> {
    let request = parse(args)?;
    let binary = match &request.binary {
        Some(binary) => binary.clone(),
        None => task::build_server(root, true)?,
    };
    let load_generator = load_generator(root)?;
    let reference = reference(root)?;
    println!("| workload | server CPU an operation | operations/s | p50 / p99 ms | reference CPU | goal | |");
    println!("|---|---|---|---|---|---|---|");
    startup(&binary, &request)?;
    load(&request, &binary, &load_generator, &reference)
}

fn parse(args: &[&str]) -> Result<Request, String> {
    let mut request = Request {
        objects: 5000,
        seconds: 6,
        watchers: 500,
        storage: "embedded".to_owned(),
        run: WORKLOADS.iter().map(|workload| workload.run.to_owned()).collect(),
        binary: None,
    };
    for arg in args {
        let (flag, value) = arg.split_once('=').ok_or_else(|| format!("{arg}: flags are --name=value"))?;
        let number = || value.parse::<u32>().map_err(|error| format!("{flag}: {error}"));
        match flag {
            "--objects" => request.objects = number()?,
            "--seconds" => request.seconds = number()?,
            "--watchers" => request.watchers = number()?,
            "--storage" => request.storage = value.to_owned(),
            "--binary" => request.binary = Some(value.into()),
            "--run" => request.run = value.split(',').map(str::to_owned).collect(),
            _ => return Err(format!("unknown flag {flag}")),
        }
    }
    Ok(request)
}

fn config(binary: &Path, request: &Request) -> Config {
    Config::new(binary).flag(format!("--storage-backend={}", request.storage))
}

/// Measures readiness, the best of several starts on empty directories with the creation of certificates, and the
/// memory of an idle server.
fn startup(binary: &Path, request: &Request) -> Result<(), String> {
    let text = |error: pintle_harness::Error| error.to_string();
    let (mut fresh, mut again) = (Duration::MAX, Duration::MAX);
    let mut idle_mb = f64::MAX;
    for _ in 0..STARTS {
        let mut server = Server::start(config(binary, request)).map_err(text)?;
        fresh = fresh.min(server.ready_after());
        // Waits until periodic work has run once: idle memory has no condition to wait for.
        #[expect(clippy::disallowed_methods, reason = "there is no runtime here")]
        std::thread::sleep(IDLE_AFTER);
        idle_mb = idle_mb.min(megabytes(&server)?);
        server.terminate().map_err(text)?;
        server.wait_for_end().map_err(text)?;
        server.restart().map_err(text)?;
        again = again.min(server.ready_after());
    }
    for (what, time, goal) in
        [("ready after a first start", fresh, GOAL_READY), ("ready after a restart", again, GOAL_READY_AGAIN)]
    {
        println!(
            "| {what} (best of {STARTS}) | {} ms | | | 1,300 to 3,400 ms | < {} ms | {} |",
            time.as_millis(),
            goal.as_millis(),
            verdict(time <= goal)
        );
    }
    println!(
        "| idle memory | {idle_mb:.0} MB | | | 262 + 41 MB | < {GOAL_IDLE_MB:.0} MB | {} |",
        verdict(idle_mb <= GOAL_IDLE_MB)
    );
    Ok(())
}

fn load(
    request: &Request,
    binary: &Path,
    load_generator: &Path,
    reference: &BTreeMap<String, f64>,
) -> Result<(), String> {
    let mut server = Server::start(config(binary, request)).map_err(|error| error.to_string())?;
    let output = task::output(
        Command::new(load_generator)
            .args(["--server", &server.url(), "--token", MASTER_TOKEN, "--pid", &server.pid().to_string()])
            .args(["--objects", &request.objects.to_string(), "--seconds", &request.seconds.to_string()])
            .args(["--watchers", &request.watchers.to_string(), "--run", &request.run.join(",")]),
    )?;
    if !server.is_running() {
        return Err(format!(
            "the server died; its log:\n{}",
            server.log().map_err(|error| error.to_string())?
        ));
    }
    let mut failures = Vec::new();
    for line in output.lines() {
        let Ok(result) = serde_json::from_str::<Value>(line) else { continue };
        let Some(name) = result.get("workload").and_then(Value::as_str) else { continue };
        if name == "idle" {
            continue;
        }
        println!("{}", row(name, &result, reference));
        if result.get("errors").and_then(Value::as_u64).unwrap_or_default() > 0 {
            failures.push(format!("{name}: {}", result.get("first_error").unwrap_or(&Value::Null)));
        }
    }
    let final_mb = megabytes(&server)?;
    let peak_mb = server.memory_kb("VmHWM").map_err(|error| error.to_string())? as f64 / 1024.0;
    println!(
        "| memory after all of it (peak) | {final_mb:.0} MB ({peak_mb:.0} MB) | | | 1,143 + 143 MB | < {GOAL_FINAL_MB:.0} MB | {} |",
        verdict(final_mb <= GOAL_FINAL_MB)
    );
    if failures.is_empty() { Ok(()) } else { Err(format!("requests failed:\n{}", failures.join("\n"))) }
}

fn row(name: &str, result: &Value, reference: &BTreeMap<String, f64>) -> String {
    let number = |key: &str| result.get(key).and_then(Value::as_f64).unwrap_or_default();
    let cpu = number("cpu_us_per_op");
    let goal =
        WORKLOADS.iter().find(|workload| workload.reported == name).and_then(|workload| workload.goal_us);
    let milliseconds = |microseconds: f64| format!("{:.3} ms", microseconds / 1000.0);
    format!(
        "| {name} | {} | {} | {} / {} | {} | {} | {} |",
        milliseconds(cpu),
        number("ops_per_s"),
        number("p50_ms"),
        number("p99_ms"),
        reference.get(name).map_or_else(String::new, |cpu| milliseconds(*cpu)),
        goal.map_or_else(String::new, |goal| format!("< {}", milliseconds(goal))),
        goal.map_or("", |goal| verdict(cpu <= goal)),
    )
}

fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "missed" }
}

fn megabytes(server: &Server) -> Result<f64, String> {
    Ok(server.memory_kb("VmRSS").map_err(|error| error.to_string())? as f64 / 1024.0)
}

/// The load generator, which is built once: it is not part of the repository and does not change.
fn load_generator(root: &Path) -> Result<PathBuf, String> {
    let source = shared::directory(root).join("loadgen");
    if !source.is_dir() {
        return Err(format!("{}: the load generator is not there", source.display()));
    }
    let target = root.join(".tools/loadgen");
    let binary = target.join("release/loadgen");
    if !binary.exists() {
        task::run(
            task::cargo(root)
                .args(["build", "--release", "--locked", "--manifest-path"])
                .arg(source.join("Cargo.toml"))
                .arg("--target-dir")
                .arg(&target),
        )?;
    }
    Ok(binary)
}

fn reference(root: &Path) -> Result<BTreeMap<String, f64>, String> {
    let path = shared::directory(root).join("loadgen/reference.jsonl");
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    Ok(lines
        .filter_map(|line| {
            Some((line.get("workload")?.as_str()?.to_owned(), line.get("cpu_us_per_op")?.as_f64()?))
        })
        .collect())
}
