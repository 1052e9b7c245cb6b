//! The body of a response.

use crate::{
    Cause,
    http1::Http1,
    http2::{BrokenOff, Receiving, StreamGuard},
    kept::Kept,
};
use bytes::Bytes;
use http::uri::Authority;
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use std::{
    fmt,
    pin::Pin,
    sync::Weak,
    task::{Context, Poll},
};

/// The body of a response, which is still arriving. When it has ended, its connection can be used again; when it is
/// dropped before, the request is aborted.
pub struct IncomingBody(Carried);

enum Carried {
    Http1(Incoming, Carrier),
    Http2(Receiving, #[expect(dead_code, reason = "its drop counts")] StreamGuard),
}

/// The task that polls the connection of a body over HTTP/1.1.
enum Carrier {
    /// Others poll the connection, or it has ended.
    None,
    /// This body polls the connection, and gives it back.
    Connection(Http1, Weak<Kept>, Authority),
}

/// Why the body of a response ended before its end.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct IncomingBodyError(BodyError);

#[derive(Debug, thiserror::Error)]
#[error(transparent)]
enum BodyError {
    Http1(#[from] hyper::Error),
    Http2(#[from] BrokenOff),
}

impl fmt::Debug for IncomingBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body: &dyn fmt::Debug = match &self.0 {
            Carried::Http1(incoming, _) => incoming,
            Carried::Http2(receiving, _) => receiving,
        };
        f.debug_tuple("IncomingBody").field(body).finish()
    }
}

/// A body whose connection is polled by others.
impl From<Incoming> for IncomingBody {
    fn from(incoming: Incoming) -> IncomingBody {
        IncomingBody(Carried::Http1(incoming, Carrier::None))
    }
}

impl Carrier {
    /// Gives the connection back.
    fn end(&mut self) {
        if let Carrier::Connection(connection, kept, address) = std::mem::replace(self, Carrier::None)
            && let Some(kept) = kept.upgrade()
        {
            kept.keep(address, connection);
        }
    }
}

impl IncomingBody {
    pub(crate) fn of_http1(
        incoming: Incoming,
        connection: Http1,
        home: (Weak<Kept>, Authority),
    ) -> IncomingBody {
        let mut carrier = Carrier::Connection(connection, home.0, home.1);
        if incoming.is_end_stream() {
            carrier.end();
        }
        IncomingBody(Carried::Http1(incoming, carrier))
    }

    pub(crate) fn of_http2(receiving: Receiving, stream: StreamGuard) -> IncomingBody {
        IncomingBody(Carried::Http2(receiving, stream))
    }

    /// Reads the whole body, of at most `limit` bytes.
    ///
    /// # Errors
    /// When the body is larger, or breaks off.
    pub async fn whole(self, limit: usize) -> Result<Bytes, Cause> {
        match Limited::new(self, limit).collect().await {
            Ok(whole) => Ok(whole.to_bytes()),
            Err(error) if error.is::<LengthLimitError>() => Err(Cause::TooLarge(limit)),
            Err(error) => Err(Cause::Other(error.to_string())),
        }
    }
}

impl Body for IncomingBody {
    type Data = Bytes;
    type Error = IncomingBodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, IncomingBodyError>>> {
        let (incoming, carrier) = match &mut self.get_mut().0 {
            Carried::Http1(incoming, carrier) => (incoming, carrier),
            Carried::Http2(receiving, _) => {
                return Pin::new(receiving).poll_frame(context).map(as_errors_of_bodies);
            }
        };
        let mut frame = Pin::new(&mut *incoming).poll_frame(context);
        if frame.is_pending()
            && let Carrier::Connection(connection, ..) = carrier
        {
            connection.poll(context);
            frame = Pin::new(&mut *incoming).poll_frame(context);
        }
        match &frame {
            Poll::Ready(None) => carrier.end(),
            Poll::Ready(Some(Ok(_))) if incoming.is_end_stream() => carrier.end(),
            _ => {}
        }
        frame.map(as_errors_of_bodies)
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Carried::Http1(incoming, _) => incoming.is_end_stream(),
            Carried::Http2(receiving, _) => receiving.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Carried::Http1(incoming, _) => incoming.size_hint(),
            Carried::Http2(receiving, _) => receiving.size_hint(),
        }
    }
}

fn as_errors_of_bodies<E: Into<BodyError>>(
    frame: Option<Result<Frame<Bytes>, E>>,
) -> Option<Result<Frame<Bytes>, IncomingBodyError>> {
    frame.map(|frame| frame.map_err(|error| IncomingBodyError(error.into())))
}
