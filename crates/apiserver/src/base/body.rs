//! The bodies of requests and responses.

use crate::base::lent_body::LentBody;
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt};
use http_body::{Body as HttpBody, Frame, SizeHint};
use pintle_machinery::Status;
use pintle_offload::weigh;
use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

/// A response body: whole, or frame by frame.
pub enum Body {
    /// The whole body; `None` for an empty body and after it was sent.
    Full(Option<Bytes>),
    /// Frames as they are produced. Dropping the body cancels the work that produces them.
    Stream(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

impl Body {
    /// No body.
    pub fn empty() -> Body {
        Body::Full(None)
    }

    /// The same body, which keeps a guard alive until it is sent or dropped.
    pub fn with_guard(self, guard: impl Send + 'static) -> Body {
        let state = (self, guard);
        Body::stream(futures_util::stream::unfold(state, |(mut body, guard)| async move {
            let frame = match &mut body {
                Body::Full(bytes) => bytes.take()?,
                Body::Stream(frames) => frames.next().await?,
            };
            Some((frame, (body, guard)))
        }))
    }

    /// The same body, which runs `end(value)` after its last frame was taken. If the body is dropped before that,
    /// `value` is dropped and `end` does not run.
    pub fn with_end<T, F>(self, value: T, end: fn(T) -> F) -> Body
    where
        T: Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let state = (self, Some(value));
        Body::stream(futures_util::stream::unfold(state, move |(mut body, mut value)| async move {
            let frame = match &mut body {
                Body::Full(bytes) => bytes.take(),
                Body::Stream(frames) => frames.next().await,
            };
            if frame.is_none()
                && let Some(value) = value.take()
            {
                end(value).await;
            }
            frame.map(|frame| (frame, (body, value)))
        }))
    }

    /// A body of frames.
    pub fn stream(frames: impl Stream<Item = Bytes> + Send + 'static) -> Body {
        Body::Stream(Box::pin(frames))
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Body {
        Body::Full(Some(bytes))
    }
}

impl From<String> for Body {
    fn from(text: String) -> Body {
        Body::Full(Some(text.into()))
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Body::Full(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Body::Stream(frames) => {
                frames.as_mut().poll_next(context).map(|frame| frame.map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Body::Full(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Full(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Body::Stream(_) => SizeHint::default(),
        }
    }
}

/// A request body: from the network, or from a caller in this process.
pub enum RequestBody {
    /// From the network.
    Incoming(LentBody),
    /// From a caller in this process.
    Bytes(Bytes),
}

/// The size limit of a request body, in bytes.
pub const MAX_REQUEST_BYTES: usize = 3 * 1024 * 1024;

impl RequestBody {
    /// Reads the whole body.
    ///
    /// # Errors
    /// 413 when the body is larger than [`MAX_REQUEST_BYTES`]; 400 when it ends early; 429 when the bodies of other
    /// requests leave no memory for it; 504 when it does not arrive within the request timeout; 503 when the server
    /// shuts down first.
    pub async fn read(self) -> Result<Bytes, Status> {
        let bytes = match self {
            RequestBody::Bytes(bytes) if bytes.len() > MAX_REQUEST_BYTES => Err(too_large()),
            RequestBody::Bytes(bytes) => Ok(bytes),
            RequestBody::Incoming(incoming) => read_incoming(incoming).await,
        }?;
        weigh(bytes.len()).await;
        Ok(bytes)
    }
}

/// Reads a body from the network. Does not read bytes beyond the limit.
async fn read_incoming(mut incoming: LentBody) -> Result<Bytes, Status> {
    let known = usize::try_from(incoming.min_size()).unwrap_or(usize::MAX);
    if known > MAX_REQUEST_BYTES {
        return Err(too_large());
    }
    let mut charge = incoming.charge();
    let mut body = BytesMut::new();
    while let Some(frame) = incoming.frame().await? {
        let Ok(data) = frame.into_data() else { continue };
        let length = body.len() + data.len();
        if length > MAX_REQUEST_BYTES {
            return Err(too_large());
        }
        // Growing the buffer may copy it: old and new buffer are in memory together.
        charge.raise_to(2 * length)?;
        body.extend_from_slice(&data);
    }
    charge.settle(body.freeze())
}

fn too_large() -> Status {
    Status::request_entity_too_large(&format!("limit is {MAX_REQUEST_BYTES}"))
}
