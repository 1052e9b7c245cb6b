//! Tells the service manager the state of the server
//! (<https://www.freedesktop.org/software/systemd/man/latest/sd_notify.html>).

use std::{
    io,
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixDatagram},
    },
};

/// The socket of a service manager that waits for the server's state; none if the server was not started by one.
pub(crate) struct ServiceManager(Option<UnixDatagram>);

impl ServiceManager {
    /// The service manager that the environment names. A socket that cannot be used is told in the log.
    pub(crate) fn from_environment() -> ServiceManager {
        let Ok(name) = std::env::var("NOTIFY_SOCKET") else { return ServiceManager(None) };
        match connect(&name) {
            Ok(socket) => ServiceManager(Some(socket)),
            Err(error) => {
                tracing::warn!(%error, socket = name, "the service manager cannot be told the state");
                ServiceManager(None)
            }
        }
    }

    /// The server is ready to serve.
    pub(crate) fn ready(&self) {
        self.tell("READY=1\nSTATUS=Serving");
    }

    /// The server has begun to stop.
    pub(crate) fn stopping(&self) {
        self.tell("STOPPING=1\nSTATUS=Waiting for the end of requests");
    }

    fn tell(&self, state: &str) {
        if let ServiceManager(Some(socket)) = self
            && let Err(error) = socket.send(state.as_bytes())
        {
            tracing::warn!(%error, "the service manager was not told the state");
        }
    }
}

fn connect(name: &str) -> io::Result<UnixDatagram> {
    let address = match name.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(name)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    socket.connect_addr(&address)?;
    Ok(socket)
}
