//! Counts the instructions that the server executes for one operation, under valgrind.
//!
//! The time of an operation depends on what else a machine does; on a shared one it varies by half. Instructions repeat within a
//! percent, so that two builds can be compared, and the files that this leaves tell where they go:
//! `callgrind_annotate --inclusive=yes FILE`. The kernel's are not counted, and neither are cache misses.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use pintle_harness::{Config, MASTER_TOKEN, Server};
use serde_json::Value;

use crate::task;

/// The load generator's workloads that have operations of one kind.
const WORKLOADS: &[&str] = &["create", "get", "update", "patch", "apply", "delete"];
/// The pods in the server, except for the workload that creates them.
const OBJECTS: &str = "400";
/// The time of a workload: a server takes fifty times as long as without valgrind.
const SECONDS: &str = "15";

pub(crate) fn run(root: &Path, args: &[&str]) -> Result<(), String> {
    let (mut binary, mut workloads) = (None, WORKLOADS.to_vec());
    for arg in args {
        match arg.split_once('=') {
            Some(("--binary", value)) => binary = Some(PathBuf::from(value)),
            Some(("--run", value)) => workloads = value.split(',').collect(),
            _ => return Err(format!("unknown flag {arg}")),
        }
    }
    let binary = match binary {
        Some(binary) => binary,
        None => task::build_server(root, true)?,
    };
    let load_generator = super::load_generator(root)?;
    let directory = root.join("target/instructions");
    let failed = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    fs::create_dir_all(&directory).map_err(|error| failed(&directory, error))?;
    let binary = fs::canonicalize(&binary).map_err(|error| failed(&binary, error))?;
    println!("| workload | instructions an operation | profile |");
    println!("|---|---|---|");
    for workload in workloads {
        let (instructions, profile) = count(&binary, &load_generator, &directory, workload)?;
        println!("| {workload} | {instructions} | {} |", profile.display());
    }
    Ok(())
}

/// The instructions of an operation, and the file that has them by function.
fn count(
    binary: &Path,
    load_generator: &Path,
    directory: &Path,
    workload: &str,
) -> Result<(u64, PathBuf), String> {
    let profile = directory.join(format!("{workload}.callgrind"));
    let server = Server::start(Config::new(under_valgrind(binary, directory, &profile)?))
        .map_err(|error| error.to_string())?;
    let load = |workload: &str| {
        task::output(
            Command::new(load_generator)
                .args([
                    "--server",
                    &server.url(),
                    "--token",
                    MASTER_TOKEN,
                    "--pid",
                    &server.pid().to_string(),
                ])
                .args(["--objects", OBJECTS, "--seconds", SECONDS, "--run", workload]),
        )
    };
    if workload != "create" {
        load("create")?;
    }
    let control = |arg: &[&str]| {
        task::output(Command::new("callgrind_control").args(arg).arg(server.pid().to_string())).map(drop)
    };
    control(&["-i", "on"])?;
    let operations = operations(&load(workload)?)?;
    control(&["-d"])?;
    // The first dump has this number behind the name of the file.
    let dump = directory.join(format!("{workload}.callgrind.1"));
    fs::rename(&dump, &profile).map_err(|error| format!("{}: {error}", dump.display()))?;
    let text = fs::read_to_string(&profile).map_err(|error| format!("{}: {error}", profile.display()))?;
    let total = text.lines().find_map(|line| line.strip_prefix("totals: "));
    let total: Option<u64> = total.and_then(|total| total.trim().parse().ok());
    let total = total.ok_or_else(|| format!("{}: no totals", profile.display()))?;
    Ok((total / operations, profile))
}

/// A script that runs the server under valgrind, without counting what it does until it is told to.
fn under_valgrind(binary: &Path, directory: &Path, profile: &Path) -> Result<PathBuf, String> {
    let script = directory.join("server");
    let text = format!(
        "#!/bin/sh\nexec valgrind --tool=callgrind --instr-atstart=no --callgrind-out-file='{}' '{}' \"$@\"\n",
        profile.display(),
        binary.display()
    );
    fs::write(&script, text)
        .and_then(|()| fs::set_permissions(&script, fs::Permissions::from_mode(0o755)))
        .map_err(|error| format!("{}: {error}", script.display()))?;
    Ok(script)
}

/// The operations of a workload, of which none may have failed.
fn operations(report: &str) -> Result<u64, String> {
    let mut results = report.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let number = |result: &Value, key: &str| result.get(key).and_then(Value::as_u64).unwrap_or_default();
    let result = results.next_back().ok_or("the load generator reported nothing")?;
    match (number(&result, "ops"), number(&result, "errors")) {
        (1.., 0) => Ok(number(&result, "ops")),
        _ => Err(format!("operations failed: {}", result.get("first_error").unwrap_or(&Value::Null))),
    }
}
