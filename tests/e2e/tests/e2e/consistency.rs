//! Checks that everything clients see is one history, while servers are killed.
//!
//! Clients make random requests for a few objects, on all servers, and keep what they asked for and got. Watches start
//! anywhere, with and without selectors. Meanwhile servers are killed and started again, history is compacted, an embedded
//! store is replaced by its snapshot, and etcd is killed and paused.
//! At the end, the events of the watches that were resumed all the time ([`recorder`]) are the ordered writes, and all
//! else must agree with them:
//!
//! - Each acknowledged write is in the history, a refused one is not, and one without a response is there at most once
//!   ([`check`]). It does what it says to the object before it: conditions hold, and nothing that others wrote is lost.
//! - The order agrees with real time: requests take effect between their begin and their end ([`order`]).
//! - A list or page is the state at its version, and a watch a run of the history ([`watches`]).
//! - A version has one content, in every form of responses, and is never used again; what was seen is there after a crash.
//! - History is there until it may be compacted.
//!
//! A run goes on until enough has happened, and one in which too little happens ([`exercised`]) fails, too.
//!
//! A failure prints the seed. `PINTLE_CONSISTENCY_SEED` repeats its random choices, though not the times of the threads;
//! `PINTLE_CONSISTENCY_FAULTS` is the number of faults of each run.

mod check;
mod client;
mod exercised;
mod form;
mod history;
mod order;
mod random;
mod recorder;
mod resource;
mod run;
mod timeline;
mod watcher;
mod watches;
mod watching;

use crate::Result;
use check::Check;
use history::Answer;
use pintle_e2e::{PATIENCE, config};
use pintle_harness::{Etcd, Server, wait_for};
use std::{
    env,
    ffi::OsStr,
    fs,
    process::Command,
    sync::atomic::Ordering,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// The number of violations that a failure prints.
const PRINTED: usize = 5;
/// The age of compacted history, in each attempt. Nothing can be checked if the recorders lag behind by more, as on a busy
/// machine.
const COMPACTED: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(4), Duration::from_secs(16)];

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok().map(|number| number.parse().unwrap())
}

/// Runs clients and watches through faults, and checks what they saw. `compacted` is the age of compacted history. Returns
/// false if the history is not known.
fn check(
    servers: &mut [Server],
    faults: u64,
    compacted: Option<Duration>,
    fault: impl FnMut(usize, &mut [Server], &run::Pause) -> Result<bool>,
) -> Result<bool> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis() as u64;
    let seed = number("PINTLE_CONSISTENCY_SEED").unwrap_or(now);
    let faults = number("PINTLE_CONSISTENCY_FAULTS").unwrap_or(faults) as usize;
    eprintln!("seed {seed}");
    let start = run::prepare(servers)?;
    let (history, recorders) = run::run(seed, servers, start, faults, compacted, fault)?;
    if history.late.load(Ordering::Acquire) {
        eprintln!("history was compacted before it was read");
        return Ok(false);
    }
    let mut check = Check::new(&history, &recorders);
    check.check_events();
    check.check_writes();
    check.check_order(start, &recorders);
    let (found, events) = (check.violations.len(), recorders.iter().map(|recorder| recorder.events.len()));
    let operations = history.operations.lock().unwrap();
    eprintln!(
        "{faults} faults, {} requests, {} of them expired, {} watches, {} events to recorders",
        operations.len(),
        operations.iter().filter(|operation| matches!(operation.answer, Answer::Expired(_))).count(),
        history.watches.lock().unwrap().len(),
        events.sum::<usize>()
    );
    drop(operations);
    check.violations.truncate(PRINTED);
    assert!(
        found == 0,
        "seed {seed}: {found} violations, the first of them:\n{}",
        check.violations.join("\n")
    );
    let missing = exercised::missing(&history, &recorders, faults);
    assert!(missing.is_empty(), "seed {seed}: the run checks too little: {}", missing.join("; "));
    Ok(true)
}

#[test]
fn an_embedded_store_has_one_history_through_kill_9() -> Result {
    with_compaction(check_embedded)
}

/// Runs a check while history of an age is compacted, until the history is known.
fn with_compaction(check: impl Fn(Duration) -> Result<bool>) -> Result {
    for compacted in COMPACTED {
        if check(compacted)? {
            return Ok(());
        }
    }
    Err("the machine is too busy to read history before it is compacted".into())
}

fn check_embedded(compacted: Duration) -> Result<bool> {
    let mut servers = [Server::start(config()?.flag(format!("--etcd-compaction-interval={compacted:?}")))?];
    check(&mut servers, 4, Some(compacted), |round, servers, pause| {
        let server = &mut servers[0];
        let is_restored = round % 3 == 1;
        let paused = is_restored.then(pause).transpose()?;
        server.kill()?;
        if is_restored {
            restore(server)?;
        }
        server.restart()?;
        drop(paused);
        Ok(is_restored)
    })
}

/// Replaces the store of a server that does not run by its snapshot.
fn restore(server: &Server) -> Result {
    let (data, file) = (server.directory().join("data"), server.directory().join("snapshot"));
    let run = |arguments: [&OsStr; 3]| -> Result {
        let mut command = Command::new(pintle_e2e::variable("PINTLE_SERVER")?);
        let output = command.arg("snapshot").args(arguments).arg("--data-dir").arg(&data).output()?;
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).into()),
        }
    };
    run(["save".as_ref(), "--overwrite".as_ref(), file.as_ref()])?;
    fs::remove_dir_all(data.join("store"))?;
    run(["restore".as_ref(), "--output=json".as_ref(), file.as_ref()])
}

#[test]
fn two_servers_on_one_etcd_have_one_history_through_kill_9() -> Result {
    assert!(check_etcd(6, None)?, "without compaction, all of the history is there");
    Ok(())
}

#[test]
fn two_servers_on_one_etcd_have_one_history_while_it_is_compacted() -> Result {
    with_compaction(|compacted| check_etcd(3, Some(compacted)))
}

fn check_etcd(faults: u64, compacted: Option<Duration>) -> Result<bool> {
    let mut etcd = Etcd::start(1)?;
    let start = || {
        let config = config()?.flag(format!("--etcd-servers={}", etcd.urls()));
        Server::start(match compacted {
            Some(age) => config.flag(format!("--etcd-compaction-interval={age:?}")),
            None => config,
        })
    };
    let mut servers = [start()?, start()?];
    let ready = |servers: &[Server]| -> Result {
        for server in servers {
            let client = server.client()?;
            wait_for("the server to be ready", PATIENCE, || {
                client.get("/readyz").ok().filter(|response| response.status == 200)
            })?;
        }
        Ok(())
    };
    check(&mut servers, faults, compacted, |round, servers, _| {
        match round % 3 {
            0 => {
                let killed = &mut servers[round / 3 % 2];
                killed.kill()?;
                killed.restart()?;
            }
            1 => {
                let member = etcd.member_mut(0)?;
                member.kill()?;
                member.restart()?;
                etcd.wait_ready()?;
                ready(servers)?;
            }
            _ => {
                etcd.member(0)?.pause()?;
                // Until the servers notice.
                let client = servers[0].client()?;
                wait_for("the check of etcd to fail", PATIENCE, || {
                    client.get("/readyz").ok().filter(|response| response.status == 500)
                })?;
                etcd.member(0)?.resume()?;
                ready(servers)?;
            }
        }
        Ok(false)
    })
}
