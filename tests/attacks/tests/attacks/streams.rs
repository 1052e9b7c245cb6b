//! Attacks with thousands of connections that stay: streams to a node, over SPDY and WebSocket, and watches over WebSocket.

use crate::Result;
use pintle_attacks::{Bounds, Target, is_release};
use pintle_harness::{
    BulkKubelet, Client, Connection, Error, Server, in_own_network, is_in_own_network, wait_for,
};
use std::{env, time::Duration};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PATIENCE: Duration = Duration::from_secs(60);
/// The streams of each kind.
const COUNT: usize = 600;
/// The memory of one stream at most, in kB: two TLS connections, and the buffers of a session.
const STREAM_KB: u64 = 192;

/// How many requests of a kind run, as the server's metrics count them.
fn running(server: &Server, labels: &str) -> Option<usize> {
    let metrics = server.client().ok()?.get("/metrics").ok()?.text();
    let lines = metrics
        .lines()
        .filter(|line| line.starts_with("apiserver_longrunning_requests{") && line.contains(labels));
    Some(lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum::<f64>() as usize)
}

fn open(client: &Client, kind: usize) -> std::result::Result<Connection, Error> {
    match kind {
        0 => BulkKubelet::spdy(client, &BulkKubelet::exec()),
        1 => BulkKubelet::web_socket(client, &BulkKubelet::exec(), "v5.channel.k8s.io"),
        2 => BulkKubelet::spdy(client, &BulkKubelet::port_forward()),
        _ => watch(client),
    }
}

/// A watch over WebSocket, which needs an origin and accepts any protocol.
fn watch(client: &Client) -> std::result::Result<Connection, Error> {
    let mut connection = client.connect()?;
    let headers = [
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("origin", "https://console.example.com"),
    ];
    connection.send("GET", &format!("{MAPS}?watch=1&labelSelector=none"), &headers, b"")?;
    match connection.head()? {
        (101, _) => Ok(connection),
        (status, _) => Err(format!("a watch: {status}").into()),
    }
}

/// Nodes may not have loopback addresses, so that the test repeats itself in a network of its own.
#[test]
fn thousands_of_streams_hold_no_seats_and_end_in_order() -> Result {
    if !is_in_own_network() {
        let mut command = in_own_network(env::current_exe()?);
        let name = "streams::thousands_of_streams_hold_no_seats_and_end_in_order";
        let output = command.args(["--exact", name, "--nocapture"]).output()?;
        print!("{}", String::from_utf8_lossy(&output.stdout));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        return Ok(());
    }
    // A time limit that the attack exceeds, and two seats.
    let mut target = Target::start_with(&[
        "--request-timeout=3s",
        "--max-requests-inflight=2",
        "--max-mutating-requests-inflight=1",
    ])?;
    BulkKubelet::start(&target.server)?;
    let held_kb = target.server.memory_kb("VmRSS")?;
    let (connections, cost) = target.attack(|server| {
        let client = server.client()?;
        let mut connections = Vec::new();
        for number in 0..4 * COUNT {
            connections.push(open(&client, number % 4)?);
        }
        wait_for("all streams", PATIENCE, || (BulkKubelet::upgraded() >= 3 * COUNT).then_some(()))?;
        for (labels, expected) in [
            ("subresource=\"exec\"", 2 * COUNT),
            ("subresource=\"portforward\"", COUNT),
            ("resource=\"configmaps\"", COUNT),
        ] {
            wait_for(labels, PATIENCE, || (running(server, labels)? == expected).then_some(()))?;
        }
        // Other requests are served, and no stream ends with the time of requests.
        assert_eq!(client.get(MAPS)?.status, 200);
        Ok(connections)
    })?;
    println!("{} streams: {cost:?}, {held_kb} kB before", connections.len());
    let streams = connections.len() as u64;
    let bounds = Bounds {
        livez: Duration::from_secs(2),
        cpu: Duration::from_secs(30),
        peak_memory_kb: held_kb + streams * STREAM_KB * if is_release() { 1 } else { 2 },
    };
    cost.assert("streams", &bounds);
    // Half of the clients leave.
    let (gone, kept): (Vec<_>, Vec<_>) = connections.into_iter().enumerate().partition(|(at, _)| at % 8 < 4);
    drop(gone);
    for (labels, expected) in [("subresource=\"exec\"", COUNT), ("resource=\"configmaps\"", COUNT / 2)] {
        wait_for(labels, PATIENCE, || (running(&target.server, labels)? == expected).then_some(()))?;
    }
    // The server ends the other ones, and then itself.
    target.server.terminate()?;
    let status = target.server.wait_for_end()?;
    assert!(status.success(), "{status}");
    for (at, mut connection) in kept {
        if at % 4 == 3 {
            assert_eq!(connection.read(4)?, b"\x88\x02\x03\xe8", "a watch ends with a close frame");
        }
    }
    Ok(())
}
