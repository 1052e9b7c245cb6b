//! Starts the command as a service manager does, reads what it is told, and stops it by signals.

#![expect(clippy::unwrap_used, reason = "a test stops at anything unexpected")]

use std::{
    net::TcpListener,
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixDatagram},
    },
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};
use tempfile::TempDir;

/// Longer than a start takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// The command, and the socket that it tells its state.
struct Managed<'a> {
    process: Child,
    socket: &'a UnixDatagram,
    _data: TempDir,
}

impl<'a> Managed<'a> {
    fn start(name: &str, socket: &'a UnixDatagram, flags: &[&str]) -> Managed<'a> {
        let data = tempfile::tempdir().unwrap();
        let process = Command::new(env!("CARGO_BIN_EXE_pintle"))
            .args(["--secure-port=0", "--bind-address=127.0.0.1"])
            .arg(format!("--data-dir={}", data.path().display()))
            .args(flags)
            .env("NOTIFY_SOCKET", name)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Managed { process, socket, _data: data }
    }

    fn next(&self) -> String {
        let mut message = [0; 1024];
        let length = self.socket.recv(&mut message).unwrap();
        String::from_utf8(message.get(..length).unwrap().to_vec()).unwrap()
    }

    fn terminate(&self) {
        let id = rustix::process::Pid::from_raw(i32::try_from(self.process.id()).unwrap()).unwrap();
        rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    }

    fn ended(mut self) -> ExitStatus {
        self.process.wait().unwrap()
    }
}

/// Starts a server with this socket, and ends it with a signal.
fn told(name: &str, socket: &UnixDatagram) {
    let server = Managed::start(name, socket, &["--storage-backend=memory"]);
    assert!(server.next().starts_with("READY=1\n"));
    server.terminate();
    assert!(server.next().starts_with("STOPPING=1\n"));
    assert!(server.ended().success());
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

#[test]
fn a_second_signal_ends_the_shutdown() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    let flags = ["--storage-backend=memory", "--shutdown-delay-duration=2m"];
    let server = Managed::start(path.to_str().unwrap(), &socket, &flags);
    assert!(server.next().starts_with("READY=1\n"));
    server.terminate();
    assert!(server.next().starts_with("STOPPING=1\n"));
    server.terminate();
    // In order, it would end successfully.
    assert_eq!(server.ended().code(), Some(1));
}

#[test]
fn a_signal_ends_a_start_whose_store_does_not_answer() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let etcd = format!("--etcd-servers=http://{}", silent.local_addr().unwrap());
    let server = Managed::start(path.to_str().unwrap(), &socket, &[&etcd]);
    let _asked = silent.accept().unwrap();
    server.terminate();
    assert!(server.next().starts_with("STOPPING=1\n"));
    // A start that is given up because of the store fails.
    assert!(server.ended().success());
}
