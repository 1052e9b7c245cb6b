//! Connections before TLS: direct ones, and tunnels through proxies.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

/// A connection through a proxy.
pub trait Tunnel: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Tunnel for T {}

/// A connection to another server, without TLS.
pub enum Link {
    /// A connection over the network.
    Direct(TcpStream),
    /// A connection through a proxy.
    Tunnel(Box<dyn Tunnel>),
}

/// Calls a function of the connection, direct or through a proxy.
macro_rules! either {
    ($link:expr, $inner:ident => $call:expr) => {
        match $link.get_mut() {
            Link::Direct($inner) => {
                let $inner = Pin::new($inner);
                $call
            }
            Link::Tunnel($inner) => {
                let $inner = Pin::new($inner);
                $call
            }
        }
    };
}

impl AsyncRead for Link {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        either!(self, link => link.poll_read(context, buffer))
    }
}

impl AsyncWrite for Link {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        either!(self, link => link.poll_write(context, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, link => link.poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, link => link.poll_shutdown(context))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Link::Direct(link) => link.is_write_vectored(),
            Link::Tunnel(link) => link.is_write_vectored(),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        either!(self, link => link.poll_write_vectored(context, slices))
    }
}
