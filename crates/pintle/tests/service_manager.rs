//! Starts the command as a service manager does, and reads what it is told.

#![expect(clippy::unwrap_used, reason = "a test stops at anything unexpected")]

use std::{
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixDatagram},
    },
    process::{Command, Stdio},
    time::Duration,
};

/// Longer than a start takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts a server with this socket, and ends it with a signal.
fn told(name: &str, socket: &UnixDatagram) {
    let data = tempfile::tempdir().unwrap();
    let mut process = Command::new(env!("CARGO_BIN_EXE_pintle"))
        .args(["--secure-port=0", "--bind-address=127.0.0.1", "--storage-backend=memory"])
        .arg(format!("--data-dir={}", data.path().display()))
        .env("NOTIFY_SOCKET", name)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let next = || {
        let mut message = [0; 1024];
        let length = socket.recv(&mut message).unwrap();
        String::from_utf8(message.get(..length).unwrap().to_vec()).unwrap()
    };
    assert!(next().starts_with("READY=1\n"));
    let id = rustix::process::Pid::from_raw(i32::try_from(process.id()).unwrap()).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    assert!(next().starts_with("STOPPING=1\n"));
    assert!(process.wait().unwrap().success());
}

#[test]
fn the_service_manager_is_told_when_the_server_is_ready_and_when_it_stops() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("notify");
    told(path.to_str().unwrap(), &UnixDatagram::bind(&path).unwrap());
    let name = format!("pintle-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    told(&format!("@{name}"), &UnixDatagram::bind_addr(&address).unwrap());
}
