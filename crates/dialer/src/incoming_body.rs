//! The body of a response.

use crate::{Cause, http1::Http1, http2::StreamGuard, kept::Kept};
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
pub struct IncomingBody {
    incoming: Incoming,
    carrier: Carrier,
}

enum Carrier {
    /// Others poll the connection, or it has ended.
    None,
    /// This body polls the connection, and gives it back.
    Http1(Http1, Weak<Kept>, Authority),
    Http2(#[expect(dead_code, reason = "its drop counts")] StreamGuard),
}

impl fmt::Debug for IncomingBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IncomingBody").field("incoming", &self.incoming).finish_non_exhaustive()
    }
}

/// A body whose connection is polled by others.
impl From<Incoming> for IncomingBody {
    fn from(incoming: Incoming) -> IncomingBody {
        IncomingBody { incoming, carrier: Carrier::None }
    }
}

impl IncomingBody {
    pub(crate) fn of_http1(
        incoming: Incoming,
        connection: Http1,
        home: (Weak<Kept>, Authority),
    ) -> IncomingBody {
        let carrier = Carrier::Http1(connection, home.0, home.1);
        let mut body = IncomingBody { incoming, carrier };
        if body.incoming.is_end_stream() {
            body.end();
        }
        body
    }

    pub(crate) fn of_http2(incoming: Incoming, stream: StreamGuard) -> IncomingBody {
        IncomingBody { incoming, carrier: Carrier::Http2(stream) }
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

    /// Gives the connection back.
    fn end(&mut self) {
        if let Carrier::Http1(connection, kept, address) = std::mem::replace(&mut self.carrier, Carrier::None)
            && let Some(kept) = kept.upgrade()
        {
            kept.keep(address, connection);
        }
    }
}

impl Body for IncomingBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        let mut frame = Pin::new(&mut this.incoming).poll_frame(context);
        if frame.is_pending()
            && let Carrier::Http1(connection, ..) = &mut this.carrier
        {
            connection.poll(context);
            frame = Pin::new(&mut this.incoming).poll_frame(context);
        }
        match &frame {
            Poll::Ready(None) => this.end(),
            Poll::Ready(Some(Ok(_))) if this.incoming.is_end_stream() => this.end(),
            _ => {}
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
