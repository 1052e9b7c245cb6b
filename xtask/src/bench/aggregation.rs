//! Measures what a request costs the server that it forwards to an extension API server: a GET, an event of a watch, and
//! the memory of a large body.
//!
//! The goals are for clients as controllers are: they have many requests and watches at the same time on one HTTP/2
//! connection, as the load generator has. The cost of a lone request, for which the server has to wake up four times, is
//! printed beside, with the cost of a bare copy of its bytes on this machine.
//!
//! Client and extension API server are threads of this process, so that the CPU time of the server's process is that of
//! the proxy. All of them are in a network of their own, since endpoints may not have loopback addresses.

use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pintle_harness::{BulkServer, BusyClient, Config, Error, Server, in_own_network, is_in_own_network};

use serde_json::json;

use super::bare_relay;
use crate::task;

const GOAL_GET: Duration = Duration::from_micros(60);
const GOAL_EVENT: Duration = Duration::from_micros(8);
const GOAL_MB: f64 = 20.0;
/// The size of the response to a GET, in bytes.
const GET_BYTES: u64 = 5 << 10;
/// The size of an event, in bytes.
const EVENT_BYTES: usize = 983;
/// The number of GETs at the same time, as the load generator has.
const GETS_AT_ONCE: usize = 16;
/// The number of watches that get an event at the same time, as a connection of the load generator has.
const WATCHES_AT_ONCE: usize = 50;

struct Request {
    gets: u32,
    events: u32,
    megabytes: u32,
    /// The binaries of a kube-apiserver and an etcd, which are measured beside.
    reference: Option<(PathBuf, PathBuf)>,
    /// The server's binary, when it is built already.
    binary: Option<PathBuf>,
}

/// The measured times of one server.
struct Cost {
    /// A GET of an object of the server itself, among others at the same time.
    own_get: Duration,
    get: Duration,
    event: Duration,
    /// A GET of an object of the server itself, with no other at the same time.
    lone_own_get: Duration,
    lone_get: Duration,
    lone_event: Duration,
    transfer: Duration,
    megabytes: f64,
}

pub(crate) fn run(root: &Path, args: &[&str]) -> Result<(), String> {
    let request = parse(args)?;
    if let Some(binary) = request.binary.as_ref().filter(|_| is_in_own_network()) {
        return compare(binary, &request).map_err(|error| error.to_string());
    }
    let binary = match &request.binary {
        Some(binary) => binary.clone(),
        None => task::build_server(root, true)?,
    };
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let binary = format!("--binary={}", binary.display());
    let status = in_own_network(program)
        .args(["bench", "aggregation"])
        .args(args)
        .arg(binary)
        .current_dir(root)
        .status();
    match status.map_err(|error| error.to_string())? {
        status if status.success() => Ok(()),
        status => Err(status.to_string()),
    }
}

fn parse(args: &[&str]) -> Result<Request, String> {
    let mut request = Request { gets: 5000, events: 5000, megabytes: 1024, reference: None, binary: None };
    for arg in args {
        let (flag, value) = arg.split_once('=').ok_or_else(|| format!("{arg}: flags are --name=value"))?;
        match flag {
            "--binary" => {
                request.binary = Some(value.into());
                continue;
            }
            "--reference" => {
                let (server, etcd) = value.split_once(',').ok_or("--reference=KUBE_APISERVER,ETCD")?;
                request.reference = Some((server.into(), etcd.into()));
                continue;
            }
            _ => {}
        }
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

/// Measures the server, and the reference after it.
fn compare(binary: &Path, request: &Request) -> Result<(), Error> {
    let config = Config::new(binary).flag("--storage-backend=memory");
    let ours = measure(config, request)?;
    let reference = match &request.reference {
        Some((server, etcd)) => Some(measure(Config::reference(server, etcd), request)?),
        None => None,
    };
    let bare_get = bare_relay::cost(request.gets, 400, GET_BYTES as usize, Duration::ZERO)?;
    let bare_event = bare_relay::cost(request.events, EVENT_BYTES, 0, BulkServer::EVENT_PAUSE)?;
    println!("| | server CPU | goal | | a bare copy | reference |");
    println!("|---|---|---|---|---|---|");
    let beside = |cost: &dyn Fn(&Cost) -> String| reference.as_ref().map(cost).unwrap_or_default();
    for (what, goal, bare, of) in [
        ("a GET of 5 KB, not proxied", None, None, (|cost| cost.own_get) as fn(&Cost) -> Duration),
        ("a proxied GET of 5 KB", Some(GOAL_GET), None, |cost| cost.get),
        ("an event of a proxied watch", Some(GOAL_EVENT), None, |cost| cost.event),
        ("a lone GET of 5 KB, not proxied", None, None, |cost| cost.lone_own_get),
        ("a lone proxied GET of 5 KB", None, Some(bare_get), |cost| cost.lone_get),
        ("a lone event of a proxied watch", None, Some(bare_event), |cost| cost.lone_event),
    ] {
        let is = of(&ours);
        let verdict = goal.map_or("", |goal| super::verdict(is < goal));
        let goal = goal.map_or_else(String::new, |goal| format!("< {goal:?}"));
        let bare = bare.map_or_else(String::new, |bare| format!("{bare:.1?}"));
        let beside = beside(&|cost| format!("{:.1?}", of(cost)));
        println!("| {what} | {is:.1?} | {goal} | {verdict} | {bare} | {beside} |");
    }
    let mb = request.megabytes;
    let time = beside(&|cost| format!("{:.1?}", cost.transfer));
    println!("| {mb} MB | {:.1?} | | | | {time} |", ours.transfer);
    let verdict = super::verdict(ours.megabytes < GOAL_MB);
    let memory = beside(&|cost| format!("{:.1} MB", cost.megabytes));
    println!("| memory of {mb} MB | {:.1} MB | < {GOAL_MB} MB | {verdict} | | {memory} |", ours.megabytes);
    Ok(())
}

fn measure(config: Config, request: &Request) -> Result<Cost, Error> {
    let server = Server::start(config.flag("--enable-aggregator-routing"))?;
    BulkServer::start(&server)?;
    let mut connection = server.client()?.connect()?;
    let mut cost_of_get = |path: &str| -> Result<Duration, Error> {
        let mut gets = |count: u32| -> Result<(), Error> {
            for _ in 0..count {
                let response = connection.request("GET", path, &[], b"")?;
                if response.status != 200 || (response.body.len() as u64) < GET_BYTES {
                    return Err(format!("{}: {} bytes", response.status, response.body.len()).into());
                }
            }
            Ok(())
        };
        gets(request.gets / 10)?;
        let before = server.cpu_time()?;
        gets(request.gets)?;
        Ok((server.cpu_time()? - before) / request.gets)
    };
    let config_maps = "/api/v1/namespaces/default/configmaps";
    let object = json!({"metadata": {"name": "large"}, "data": {"a": "x".repeat(GET_BYTES as usize)}});
    let created = server.client()?.post(config_maps, &object)?;
    if created.status != 201 {
        return Err(created.text().into());
    }
    let (own, proxied) = (format!("{config_maps}/large"), BulkServer::bytes(GET_BYTES));
    let (lone_own_get, lone_get) = (cost_of_get(&own)?, cost_of_get(&proxied)?);

    let client = BusyClient::connect(&server.client()?)?;
    let cost_of_busy_get = |path: &str| -> Result<Duration, Error> {
        let gets = |count| client.requests(count, GETS_AT_ONCE, |_| (path.to_owned(), String::new()));
        gets(request.gets / 10)?;
        let before = server.cpu_time()?;
        gets(request.gets)?;
        Ok((server.cpu_time()? - before) / request.gets)
    };
    let (own_get, get) = (cost_of_busy_get(&own)?, cost_of_busy_get(&proxied)?);

    let cost_of_event = |events: u32, watches: usize| -> Result<Duration, Error> {
        let path = BulkServer::events(events, watches);
        let before = server.cpu_time()?;
        let length = client.read_at_once(&path, watches)?;
        let cost = (server.cpu_time()? - before) / events / watches as u32;
        match length / watches / events as usize {
            0 => Err(format!("{path}: {length} bytes").into()),
            _ => Ok(cost),
        }
    };
    let lone_event = cost_of_event(request.events, 1)?;
    let event = cost_of_event(request.events / 5, WATCHES_AT_ONCE)?;

    let before = server.memory_kb("VmHWM")?;
    let size = u64::from(request.megabytes) << 20;
    connection.send("GET", &BulkServer::bytes(size), &[], b"")?;
    let (_, headers) = connection.head()?;
    let cpu_before = server.cpu_time()?;
    connection.discard(&headers)?;
    let transfer = server.cpu_time()? - cpu_before;
    let megabytes = server.memory_kb("VmHWM")?.saturating_sub(before) as f64 / 1024.0;

    Ok(Cost { own_get, get, event, lone_own_get, lone_get, lone_event, transfer, megabytes })
}
