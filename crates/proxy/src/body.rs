//! The bodies of responses.

use crate::backend_body::BackendBody;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};
use tokio::time::Sleep;

/// The response's body ended before its end: the client must not take it for complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the response broke off")]
pub struct BrokenOff;

/// The body of a response.
#[derive(Debug)]
pub enum ResponseBody {
    /// The whole body.
    Full(Bytes),
    /// A body that is still arriving. Dropping it aborts the forwarded request.
    Stream(Relayed),
}

impl ResponseBody {
    /// A body that breaks off at once, so that the client gets no response.
    pub(crate) fn broken() -> ResponseBody {
        ResponseBody::Stream(Relayed { first: Bytes::new(), rest: Rest::Broken, deadline: None })
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        match self.get_mut() {
            ResponseBody::Full(bytes) if bytes.is_empty() => Poll::Ready(None),
            ResponseBody::Full(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            ResponseBody::Stream(relayed) => Pin::new(relayed).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            ResponseBody::Full(bytes) => bytes.is_empty(),
            ResponseBody::Stream(relayed) => relayed.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            ResponseBody::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            ResponseBody::Stream(relayed) => relayed.size_hint(),
        }
    }
}

/// A body that is still arriving.
#[derive(Debug)]
pub struct Relayed {
    /// The beginning, which was read already.
    first: Bytes,
    rest: Rest,
    /// The time by which the body has to end.
    deadline: Option<Pin<Box<Sleep>>>,
}

#[derive(Debug)]
enum Rest {
    Incoming(BackendBody),
    /// Breaks off when what was passed on has been sent.
    Breaking,
    Broken,
}

impl Relayed {
    /// The beginning of a body, and its rest.
    pub(crate) fn new(first: Bytes, rest: BackendBody, deadline: Option<Pin<Box<Sleep>>>) -> Relayed {
        Relayed { first, rest: Rest::Incoming(rest), deadline }
    }

    /// The beginning of a body that breaks off after it.
    pub(crate) fn broken_after(first: Bytes) -> Relayed {
        Relayed { first, rest: Rest::Breaking, deadline: None }
    }
}

impl Body for Relayed {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let this = self.get_mut();
        if !this.first.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut this.first)))));
        }
        let frame = match &mut this.rest {
            Rest::Incoming(incoming) => Pin::new(incoming).poll_frame(context),
            Rest::Breaking => {
                // The server writes what it has while it waits; an error would make it drop that.
                this.rest = Rest::Broken;
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            Rest::Broken => return Poll::Ready(Some(Err(BrokenOff))),
        };
        match (frame, &mut this.deadline) {
            (Poll::Pending, Some(deadline)) => deadline.as_mut().poll(context).map(|()| Some(Err(BrokenOff))),
            (Poll::Ready(Some(Err(error))), _) => {
                tracing::debug!(%error, "the response of a proxied request broke off");
                this.rest = Rest::Breaking;
                Pin::new(this).poll_frame(context)
            }
            (frame, _) => frame.map(|frame| frame.map(|frame| frame.map_err(|_| BrokenOff))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_empty() && matches!(&self.rest, Rest::Incoming(rest) if rest.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        // The length is in the header, if it is known.
        SizeHint::default()
    }
}
