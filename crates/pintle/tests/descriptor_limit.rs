//! Tests a server whose process has no file descriptor left. It is a test binary of its own: the limit applies to the
//! whole process.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops at anything unexpected")]

#[allow(dead_code, reason = "other test programs use the rest of it")]
#[path = "in_process/peers.rs"]
mod peers;

use peers::Peer;
use pintle::{Options, StorageBackend};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::{
    fs::File,
    io::{Read, Seek},
    net::{IpAddr, Ipv4Addr, TcpStream},
    time::{Duration, Instant},
};
use tokio::time::timeout;

/// The processor time that this process has used. The file is opened while there still are descriptors.
fn processor_time(stat: &mut File) -> Duration {
    let mut text = String::new();
    stat.rewind().unwrap();
    stat.read_to_string(&mut text).unwrap();
    let fields: Vec<&str> = text.rsplit_once(')').unwrap().1.split_whitespace().collect();
    // Linux counts in units of 10 ms.
    Duration::from_millis(10 * (fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_descriptors_rests_and_closes_idle_connections() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        data_dir: dir.path().to_owned(),
        storage_backend: StorageBackend::Memory,
        bind_address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        secure_port: 0,
        advertise_address: Some(IpAddr::V4(Ipv4Addr::new(10, 20, 30, 40))),
        // More connections than there will be descriptors for.
        max_connections: Some(100_000),
        ..Options::default()
    };
    let server = pintle::start(options).await.unwrap();
    let mut stat = File::open("/proc/self/stat").unwrap();
    let open = std::fs::read_dir("/proc/self/fd").unwrap().count() as u64;
    let limit = getrlimit(Resource::Nofile);
    // The clients of this test take descriptors, too; the server gets the rest.
    setrlimit(Resource::Nofile, Rlimit { current: Some(open + 60), ..limit }).unwrap();
    let mut idle = Vec::new();
    while let Ok(stream) = TcpStream::connect(server.address()) {
        idle.push(stream);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(idle.len() >= 30, "{}", idle.len());
    let (before, begun) = (processor_time(&mut stat), Instant::now());
    tokio::time::sleep(Duration::from_secs(1)).await;
    let used = processor_time(&mut stat) - before;
    assert!(used < begun.elapsed() / 2, "it spins: {used:?}");
    let is_closed = |stream: &TcpStream| {
        stream.set_nonblocking(true).unwrap();
        stream.peek(&mut [0]).is_ok_and(|read| read == 0)
    };
    assert!(idle.iter().any(is_closed), "none of {} idle connections was closed", idle.len());
    // Half of the clients disconnect, and new ones are served.
    idle.truncate(idle.len() / 2);
    let peer = Peer::default();
    let answer = timeout(Duration::from_secs(30), peer.ask(server.address(), "/version", ""));
    assert_eq!(answer.await.unwrap().0, 200);
    server.stop().await.unwrap();
}
