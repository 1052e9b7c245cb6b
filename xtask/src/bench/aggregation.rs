//! Measures what a request costs the server that it forwards to an extension API server: a GET, an event of a watch, and
//! the memory of a large body.
//!
//! Client and extension API server are threads of this process, so that the CPU time of the server's process is that of
//! the proxy. All of them are in a network of their own, since endpoints may not have loopback addresses.

use std::env;
use std::path::Path;
use std::time::Duration;

use pintle_harness::{BulkServer, Config, Error, Server, in_own_network, is_in_own_network};

use crate::task;

const GOAL_GET: Duration = Duration::from_micros(60);
const GOAL_EVENT: Duration = Duration::from_micros(8);
const GOAL_MB: f64 = 20.0;
/// The size of the response to a GET, in bytes.
const GET_BYTES: u64 = 5 << 10;

struct Request {
    gets: u32,
    events: u32,
    megabytes: u32,
}

pub(crate) fn run(root: &Path, args: &[&str]) -> Result<(), String> {
    let request = parse(args)?;
    let binary = task::build_server(root, true)?;
    if is_in_own_network() {
        return measure(&binary, &request).map_err(|error| error.to_string());
    }
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let status = in_own_network(program).args(["bench", "aggregation"]).args(args).current_dir(root).status();
    match status.map_err(|error| error.to_string())? {
        status if status.success() => Ok(()),
        status => Err(status.to_string()),
    }
}

fn parse(args: &[&str]) -> Result<Request, String> {
    let mut request = Request { gets: 5000, events: 5000, megabytes: 1024 };
    for arg in args {
        let (flag, value) = arg.split_once('=').ok_or_else(|| format!("{arg}: flags are --name=value"))?;
        let number = value.parse::<u32>().map_err(|error| format!("{flag}: {error}"))?.max(1);
        match flag {
            "--gets" => request.gets = number,
            "--events" => request.events = number,
            "--megabytes" => request.megabytes = number,
            _ => return Err(format!("unknown flag {flag}")),
        }
    }
    Ok(request)
}

fn measure(binary: &Path, request: &Request) -> Result<(), Error> {
    let config = Config::new(binary).flag("--storage-backend=memory").flag("--enable-aggregator-routing");
    let server = Server::start(config)?;
    BulkServer::start(&server)?;
    let mut connection = server.client()?.connect()?;
    let mut gets = |count: u32| -> Result<(), Error> {
        for _ in 0..count {
            let response = connection.request("GET", &BulkServer::bytes(GET_BYTES), &[], b"")?;
            if response.status != 200 || response.body.len() as u64 != GET_BYTES {
                return Err(format!("{}: {} bytes", response.status, response.body.len()).into());
            }
        }
        Ok(())
    };
    gets(request.gets / 10)?;
    let before = server.cpu_time()?;
    gets(request.gets)?;
    let get = (server.cpu_time()? - before) / request.gets;

    let mut lines = server.client()?.lines(&BulkServer::events(request.events.into()))?;
    let before = server.cpu_time()?;
    while lines.next_json()?.is_some() {}
    let event = (server.cpu_time()? - before) / request.events;

    let before = server.memory_kb("VmHWM")?;
    let size = u64::from(request.megabytes) << 20;
    connection.send("GET", &BulkServer::bytes(size), &[], b"")?;
    let (_, headers) = connection.head()?;
    let cpu_before = server.cpu_time()?;
    connection.discard(&headers)?;
    let transfer = server.cpu_time()? - cpu_before;
    let megabytes = server.memory_kb("VmHWM")?.saturating_sub(before) as f64 / 1024.0;

    println!("| | server CPU | goal | |");
    println!("|---|---|---|---|");
    for (what, is, goal) in [
        ("a proxied GET of 5 KB", get, GOAL_GET),
        ("an event of a proxied watch, sent alone", event, GOAL_EVENT),
    ] {
        println!("| {what} | {is:.1?} | < {goal:?} | {} |", super::verdict(is < goal));
    }
    println!("| {} MB | {transfer:.1?} | | |", request.megabytes);
    let verdict = super::verdict(megabytes < GOAL_MB);
    println!("| memory of {} MB | {megabytes:.1} MB | < {GOAL_MB} MB | {verdict} |", request.megabytes);
    Ok(())
}
