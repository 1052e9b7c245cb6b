//! Runs the store's crash tests for longer than a test run does: kills of the engine and of the whole server, power
//! cuts, the consistency of what clients see, and a week of a cluster's writes.

use std::path::Path;

use crate::{task, tools};

const KILLS: &str = "1000";
const POWER_CUTS: &str = "20000";
const CONSISTENCY_FAULTS: &str = "100";

/// Runs the named parts, each with its own count, so that one can be repeated alone.
pub(crate) fn run(root: &Path, args: &[&str]) -> Result<(), String> {
    let parts: &[&str] = match args {
        [] => &["engine", "power", "server", "consistency"],
        given => given,
    };
    for part in parts {
        let mut command = task::cargo(root);
        match *part {
            "engine" => command.env("PINTLE_CRASH_KILLS", KILLS).args(storage("crash::")),
            "power" => command.env("PINTLE_POWER_CUTS", POWER_CUTS).args(storage("images::")),
            "server" => {
                let server = task::build_server(root, true)?;
                command.env("PINTLE_CRASH_KILLS", KILLS).env("PINTLE_SERVER", server).args(e2e("crash::"))
            }
            "consistency" => {
                let server = task::build_server(root, true)?;
                tools::etcd(root)?.name_in(&mut command);
                command.env("PINTLE_CONSISTENCY_FAULTS", CONSISTENCY_FAULTS).env("PINTLE_SERVER", server);
                command.args(e2e("consistency::"))
            }
            _ => return Err(format!("unknown part {part}; there are engine, power, server and consistency")),
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

fn e2e(tests: &'static str) -> [&'static str; 8] {
    ["test", "--package", "pintle-e2e", "--features", "e2e", "--", "--nocapture", tests]
}
