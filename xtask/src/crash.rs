//! Runs the store's crash tests for longer than a test run does: kills of the engine and of the whole server, power
//! cuts, and a week of a cluster's writes.

use std::path::Path;

use crate::task;

const KILLS: &str = "1000";
const POWER_CUTS: &str = "20000";

/// Runs the named parts, each with its own count, so that one can be repeated alone.
pub(crate) fn run(root: &Path, args: &[&str]) -> Result<(), String> {
    let parts: &[&str] = match args {
        [] => &["engine", "power", "server"],
        given => given,
    };
    for part in parts {
        let mut command = task::cargo(root);
        match *part {
            "engine" => command.env("PINTLE_CRASH_KILLS", KILLS).args(storage("crash::")),
            "power" => command.env("PINTLE_POWER_CUTS", POWER_CUTS).args(storage("images::")),
            "server" => {
                let server = task::build_server(root, true)?;
                command.env("PINTLE_CRASH_KILLS", KILLS).env("PINTLE_SERVER", server).args([
                    "test",
                    "--package",
                    "pintle-e2e",
                    "--features",
                    "e2e",
                    "--",
                    "--nocapture",
                    "crash::",
                ])
            }
            _ => return Err(format!("unknown part {part}; there are engine, power and server")),
        };
        task::run(&mut command)?;
    }
    Ok(())
}

/// Runs a week of a cluster's writes, with a release build because of their number.
pub(crate) fn churn(root: &Path) -> Result<(), String> {
    let mut command = task::cargo(root);
    command.env("PINTLE_CHURN_HOURS", "168").env("PINTLE_CHURN_NODES", "100");
    command.args(["test", "--release"]).args(storage("churn::").iter().skip(1));
    task::run(&mut command)
}

fn storage(tests: &'static str) -> [&'static str; 7] {
    ["test", "--package", "pintle-storage", "--lib", "--", "--nocapture", tests]
}
