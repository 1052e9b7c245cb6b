//! Runs all tests: unit tests, documentation tests, tests with real etcd servers, attacks, end-to-end tests with real
//! clients.

use std::path::Path;
use std::process::Command;

use crate::{task, tools, transcript};

pub(crate) fn run(root: &Path, args: &[&str]) -> Result<(), String> {
    let parts: &[&str] = match args {
        [] => &["unit", "doc", "etcd", "attacks", "e2e"],
        given => given,
    };
    for part in parts {
        match *part {
            "unit" => unit(root)?,
            "doc" => task::run(task::cargo(root).args(["test", "--doc", "--workspace"]))?,
            "etcd" => etcd(root)?,
            "attacks" => attacks(root, false, &[])?,
            "e2e" => end_to_end(root)?,
            _ => return Err(format!("unknown part {part}; there are unit, doc, etcd, attacks and e2e")),
        }
    }
    Ok(())
}

/// Runs the unit tests, with nextest if it is installed, because it runs the tests of all crates together.
fn unit(root: &Path) -> Result<(), String> {
    let nextest = task::output(task::cargo(root).args(["nextest", "--version"])).is_ok();
    let args: &[&str] = if nextest {
        &["nextest", "run", "--workspace"]
    } else {
        &["test", "--workspace", "--tests", "--lib", "--bins"]
    };
    task::run(task::cargo(root).args(args))
}

fn etcd(root: &Path) -> Result<(), String> {
    let servers = tools::etcd(root)?;
    let mut command = task::cargo(root);
    servers.name_in(&mut command);
    command.args(with_features("etcd"));
    if servers.old.is_none() {
        command.args(["--skip", "old_etcd"]);
    }
    task::run(&mut command)
}

/// The arguments of a run of the tests that a feature of the same name turns on. The whole workspace is named, for the
/// libraries to have the features that they have in the unit tests, and not to be compiled again.
fn with_features(tests: &str) -> [&str; 8] {
    ["test", "--workspace", "--features", tests, "--test", tests, "--no-fail-fast", "--"]
}

/// The modules of the attacks that send one request after the other to a server of their own.
const SWEEPS: [&str; 2] = ["stored::", "sweep::"];

/// Runs the attacks, which measure their server's CPU time and memory. The sweeps run side by side: each keeps one core
/// busy. The others run one after the other, since they fill the machine.
fn attacks(root: &Path, release: bool, variables: &[(&str, &str)]) -> Result<(), String> {
    let server = task::build_server(root, release)?;
    let run = |chosen: &[&str]| {
        let mut command = task::cargo(root);
        command.env("PINTLE_SERVER", &server).envs(variables.iter().copied());
        task::run(command.args(with_features("attacks")).args(chosen))
    };
    let sweeps = run(&SWEEPS);
    let others = run(&["--test-threads=1", "--skip", SWEEPS[0], "--skip", SWEEPS[1]]);
    sweeps.and(others)
}

/// Runs the sweep: every list and map of every kind in a request of more than a megabyte, with a release build.
pub(crate) fn sweep(root: &Path) -> Result<(), String> {
    attacks(root, true, &[("PINTLE_SWEEP", "all")])
}

fn end_to_end(root: &Path) -> Result<(), String> {
    let tools = tools::install(root)?;
    let etcd = tools::etcd(root)?;
    let definitions = tools::definitions(root)?;
    let server = task::build_server(root, false)?;
    let extension_server = task::build_extension_server(root, false)?;
    let environment = |command: &mut Command| {
        command
            .env("PINTLE_SERVER", &server)
            .env("PINTLE_EXTENSION_SERVER", &extension_server)
            .env("PINTLE_ROOT", root)
            .env("PINTLE_KUBECTL", &tools.kubectl)
            .env("PINTLE_HELM", &tools.helm)
            .env("PINTLE_PYTHONPATH", &tools.python_path)
            .env("PINTLE_NODE", &tools.node)
            .env("PINTLE_NODE_PATH", &tools.node_path)
            .env("PINTLE_DEFINITIONS", &definitions)
            .env("PINTLE_PROMETHEUS", &tools.prometheus);
        etcd.name_in(command);
        if let Some(old) = &tools.old_kubectl {
            command.env("PINTLE_OLD_KUBECTL", old);
        }
    };
    let mut command = task::cargo(root);
    environment(&mut command);
    command.args(with_features("e2e"));
    if tools.old_kubectl.is_none() {
        command.args(["--skip", "old_kubectl"]);
    }
    if etcd.old.is_none() {
        command.args(["--skip", "old_etcd"]);
    }
    let clients = task::run(&mut command);

    let mut command = task::cargo(root);
    environment(&mut command);
    // The same folder, so that the dependencies of both builds are compiled once.
    command.env("CARGO_TARGET_DIR", task::target_directory(root));
    let kube_rs =
        task::run(command.args(["test", "--manifest-path", "tests/kube-rs/Cargo.toml", "--locked"]));
    let transcript = transcript::check(root, &server, &tools.kubectl);
    clients.and(kube_rs).and(transcript)
}
