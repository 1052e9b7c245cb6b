//! Measures what streams to nodes cost the server: a gigabyte through `portforward` and through the standard input of `exec`,
//! over SPDY and over WebSocket, and the memory of idle `exec`s.
//!
//! Client and kubelet are threads of this process, so that the CPU time of the server's process is that of the streams. All
//! of them are in a network of their own, since nodes may not have loopback addresses.

use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pintle_harness::{
    BulkKubelet, Client, Config, Connection, Error, Server, in_own_network, is_in_own_network, wait_for,
};

use crate::task;

/// The memory of all idle `exec`s, in megabytes.
const GOAL_IDLE_MB: f64 = 60.0;
/// The part of the reference's CPU that may be used.
const GOAL_PART: f64 = 0.5;
/// The bytes of one message over WebSocket: kubectl reads its input in such pieces.
const MESSAGE_BYTES: usize = 32 << 10;
const PORT_FORWARD_PROTOCOL: &str = "SPDY/3.1+portforward.k8s.io";
const EXEC_PROTOCOL: &str = "v5.channel.k8s.io";

/// The time limit for all idle streams to reach the kubelet.
const PATIENCE: Duration = Duration::from_secs(60);

struct Request {
    megabytes: u32,
    idle: u32,
    /// The binaries of a kube-apiserver and an etcd, which are measured beside.
    reference: Option<(PathBuf, PathBuf)>,
    /// The server's binary, when it is built already.
    binary: Option<PathBuf>,
}

/// The measured costs of one server.
struct Cost {
    port_forward: Duration,
    exec: Duration,
    web_socket_port_forward: Duration,
    web_socket_exec: Duration,
    idle_spdy_mb: f64,
    idle_web_socket_mb: f64,
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
    let status = in_own_network(program)
        .args(["bench", "connections"])
        .args(args)
        .arg(format!("--binary={}", binary.display()))
        .current_dir(root)
        .status();
    match status.map_err(|error| error.to_string())? {
        status if status.success() => Ok(()),
        status => Err(status.to_string()),
    }
}

fn parse(args: &[&str]) -> Result<Request, String> {
    let mut request = Request { megabytes: 1024, idle: 2000, reference: None, binary: None };
    for arg in args {
        let (flag, value) = arg.split_once('=').ok_or_else(|| format!("{arg}: flags are --name=value"))?;
        let number = || value.parse::<u32>().map_err(|error| format!("{flag}: {error}"));
        match flag {
            "--binary" => request.binary = Some(value.into()),
            "--reference" => {
                let (server, etcd) = value.split_once(',').ok_or("--reference=KUBE_APISERVER,ETCD")?;
                request.reference = Some((server.into(), etcd.into()));
            }
            "--megabytes" => request.megabytes = number()?.max(1),
            "--idle" => request.idle = number()?.max(1),
            _ => return Err(format!("unknown flag {flag}")),
        }
    }
    Ok(request)
}

/// Measures the server, and the reference after it.
fn compare(binary: &Path, request: &Request) -> Result<(), Error> {
    let ours = measure(&|| Config::new(binary).flag("--storage-backend=memory"), request)?;
    let reference = match &request.reference {
        Some((server, etcd)) => Some(measure(&|| Config::reference(server, etcd), request)?),
        None => None,
    };
    let mb = request.megabytes;
    println!("| | server | reference | goal | |");
    println!("|---|---|---|---|---|");
    for (what, of) in [
        ("portforward over SPDY", (|cost| cost.port_forward) as fn(&Cost) -> Duration),
        ("standard input of exec over SPDY", |cost| cost.exec),
        ("portforward over WebSocket", |cost| cost.web_socket_port_forward),
        ("standard input of exec over WebSocket", |cost| cost.web_socket_exec),
    ] {
        let is = of(&ours);
        let (beside, goal, verdict) = match reference.as_ref().map(of) {
            None => Default::default(),
            Some(beside) => {
                let goal = beside.mul_f64(GOAL_PART);
                (format!("{beside:.2?}"), format!("< {goal:.2?}"), super::verdict(is <= goal))
            }
        };
        println!("| CPU of {mb} MB: {what} | {is:.2?} | {beside} | {goal} | {verdict} |");
    }
    for (what, of) in [
        ("SPDY", (|cost| cost.idle_spdy_mb) as fn(&Cost) -> f64),
        ("WebSocket", |cost| cost.idle_web_socket_mb),
    ] {
        let is = of(&ours);
        let beside = reference.as_ref().map(|cost| format!("{:.1} MB", of(cost))).unwrap_or_default();
        let verdict = super::verdict(is < GOAL_IDLE_MB);
        let idle = request.idle;
        println!(
            "| memory of {idle} idle execs over {what} | {is:.1} MB | {beside} | < {GOAL_IDLE_MB} MB | {verdict} |"
        );
    }
    Ok(())
}

fn measure(config: &dyn Fn() -> Config, request: &Request) -> Result<Cost, Error> {
    let server = Server::start(config())?;
    BulkKubelet::start(&server)?;
    let client = server.client()?;
    let bytes = u64::from(request.megabytes) << 20;
    let cpu = |what: &str, work: &dyn Fn(u64) -> Result<(), Error>| -> Result<Duration, Error> {
        let work = |bytes| work(bytes).map_err(|error| format!("{what}: {error}"));
        // The first stream has costs of its own, such as the TLS handshake.
        work(1 << 20)?;
        let before = server.cpu_time()?;
        work(bytes)?;
        Ok(server.cpu_time()?.saturating_sub(before))
    };
    let port_forward = cpu("portforward over SPDY", &|bytes| {
        let mut connection = BulkKubelet::spdy(&client, &BulkKubelet::port_forward())?;
        connection.write(&BulkKubelet::raw(bytes, 0))?;
        connection.skip(bytes + 1)
    })?;
    let exec = cpu("exec over SPDY", &|bytes| {
        let mut connection = BulkKubelet::spdy(&client, &BulkKubelet::exec())?;
        connection.write(&BulkKubelet::raw(0, bytes))?;
        let piece = vec![b'x'; MESSAGE_BYTES];
        for _ in 0..bytes / MESSAGE_BYTES as u64 {
            connection.write(&piece)?;
        }
        connection.skip(1)
    })?;
    let web_socket_port_forward = cpu("portforward over WebSocket", &|bytes| {
        let path = BulkKubelet::port_forward();
        let mut connection = BulkKubelet::web_socket(&client, &path, PORT_FORWARD_PROTOCOL)?;
        connection.write(&message(&BulkKubelet::raw(bytes, 0)))?;
        let mut left = bytes + 1;
        while left > 0 {
            let length = skip_message(&mut connection)?.ok_or("the server closed the connection")?;
            left = left.saturating_sub(length);
        }
        Ok(())
    })?;
    let web_socket_exec = cpu("exec over WebSocket", &|bytes| {
        let mut connection = BulkKubelet::web_socket(&client, &BulkKubelet::exec(), EXEC_PROTOCOL)?;
        // The channel of standard input.
        let mut input = vec![b'x'; MESSAGE_BYTES + 1];
        if let Some(channel) = input.first_mut() {
            *channel = 0;
        }
        let input = message(&input);
        for _ in 0..bytes / MESSAGE_BYTES as u64 {
            connection.write(&input)?;
        }
        // The end of standard input, with which the command ends.
        connection.write(&message(&[255, 0]))?;
        while skip_message(&mut connection)?.is_some() {}
        Ok(())
    })?;
    drop(server);
    let idle_spdy_mb = idle(config(), request, &|client| BulkKubelet::spdy(client, &BulkKubelet::exec()))?;
    let idle_web_socket_mb = idle(config(), request, &|client| {
        BulkKubelet::web_socket(client, &BulkKubelet::exec(), EXEC_PROTOCOL)
    })?;
    Ok(Cost {
        port_forward,
        exec,
        web_socket_port_forward,
        web_socket_exec,
        idle_spdy_mb,
        idle_web_socket_mb,
    })
}

/// The memory of idle streams of a fresh server, in megabytes.
fn idle(
    config: Config,
    request: &Request,
    open: &dyn Fn(&Client) -> Result<Connection, Error>,
) -> Result<f64, Error> {
    let server = Server::start(config)?;
    BulkKubelet::start(&server)?;
    let client = server.client()?;
    // The first stream has costs of its own.
    let first = open(&client)?;
    let before = server.memory_kb("VmRSS")?;
    let all = BulkKubelet::upgraded() + request.idle as usize;
    let connections = (0..request.idle).map(|_| open(&client)).collect::<Result<Vec<_>, _>>()?;
    // A client of WebSocket is answered before the kubelet.
    wait_for("all execs", PATIENCE, || (BulkKubelet::upgraded() >= all).then_some(()))?;
    let used = server.memory_kb("VmRSS")?.saturating_sub(before) as f64 / 1024.0;
    drop((first, connections));
    Ok(used)
}

/// A binary message of a client. The mask of zeros leaves the payload as it is.
fn message(payload: &[u8]) -> Vec<u8> {
    let length = payload.len();
    let mut message = match (u8::try_from(length), u16::try_from(length)) {
        (Ok(length @ ..=125), _) => vec![0x82, 0x80 | length],
        (_, Ok(length)) => [&[0x82, 0xfe][..], &length.to_be_bytes()].concat(),
        _ => [&[0x82, 0xff][..], &(length as u64).to_be_bytes()].concat(),
    };
    message.extend([0; 4]);
    message.extend(payload);
    message
}

/// Reads a frame of the server, and returns the length of its payload; `None` for the last one.
fn skip_message(connection: &mut Connection) -> Result<Option<u64>, Error> {
    let head = connection.read(2)?;
    let [first, second] = head.as_slice() else { return Err("no frame".into()) };
    let length = match second & 0x7f {
        126 => connection.read(2)?.iter().fold(0, |length, byte| length << 8 | u64::from(*byte)),
        127 => connection.read(8)?.iter().fold(0, |length, byte| length << 8 | u64::from(*byte)),
        length => u64::from(length),
    };
    connection.skip(length)?;
    Ok((first & 0x0f != 8).then_some(length))
}
