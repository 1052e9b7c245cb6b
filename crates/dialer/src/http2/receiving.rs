//! The body of a response, as it is received.

use bytes::Bytes;
use h2::{Reason, RecvStream};
use http::{StatusCode, header::CONTENT_LENGTH, response};
use http_body::{Body, Frame, SizeHint};
use std::{
    io::{self, ErrorKind},
    pin::Pin,
    task::{Context, Poll, ready},
};

/// Why a body ended before its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BrokenOff {
    /// The connection failed.
    #[error("{0}")]
    Connection(#[source] io::Error),
    /// The protocol was violated, or the server gave up.
    #[error(transparent)]
    Protocol(h2::Error),
}

impl From<h2::Error> for BrokenOff {
    fn from(error: h2::Error) -> BrokenOff {
        if !error.is_io() {
            return BrokenOff::Protocol(error);
        }
        BrokenOff::Connection(match error.into_io() {
            // The library's word for a connection that the server has closed.
            Some(error) if error.kind() == ErrorKind::BrokenPipe => ErrorKind::UnexpectedEof.into(),
            Some(error) => error,
            None => ErrorKind::Other.into(),
        })
    }
}

/// The body of a response, which is still arriving.
#[derive(Debug)]
pub(crate) struct Receiving {
    stream: RecvStream,
    /// The number of bytes to come, if it is known.
    left: Option<u64>,
    is_trailer_next: bool,
}

impl Receiving {
    /// The body of the response with this head.
    pub(super) fn new(stream: RecvStream, head: &response::Parts) -> Receiving {
        let length = head.headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        let left = match stream.is_end_stream() || head.status == StatusCode::NO_CONTENT {
            true => Some(0),
            false => length,
        };
        Receiving { stream, left, is_trailer_next: false }
    }
}

impl Body for Receiving {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let this = self.get_mut();
        if !this.is_trailer_next {
            match ready!(this.stream.poll_data(context)) {
                Some(Ok(data)) => {
                    // The server may send as much again.
                    let _ = this.stream.flow_control().release_capacity(data.len());
                    this.left = this.left.map(|left| left.saturating_sub(data.len() as u64));
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                // The response is complete, and the server wants no more of the request.
                Some(Err(error)) if error.reason() == Some(Reason::NO_ERROR) => return Poll::Ready(None),
                Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
                None => this.is_trailer_next = true,
            }
        }
        match ready!(this.stream.poll_trailers(context)) {
            Ok(trailers) => Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers)))),
            Err(error) if error.reason() == Some(Reason::NO_ERROR) => Poll::Ready(None),
            Err(error) => Poll::Ready(Some(Err(error.into()))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.stream.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
