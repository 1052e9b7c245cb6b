//! The bodies of requests and responses.

use crate::base::lent_body::LentBody;
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt};
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::{BodyExt, Full, StreamBody};
use pintle_dialer::{UpstreamBody, empty_body};
use pintle_machinery::Status;
use pintle_offload::weigh;
use pintle_proxy::{BrokenOff, ResponseBody};
use std::{
    pin::Pin,
    task::{Context, Poll},
};

/// A response body: whole, or frame by frame. Only one from another server can fail: it breaks off.
pub enum Body {
    /// The whole body; `None` for an empty body and after it was sent.
    Full(Option<Bytes>),
    /// Frames as they are produced. Dropping the body cancels the work that produces them.
    Stream(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
    /// Frames and trailers from another server. When they break off, the client's stream or connection is aborted.
    Foreign(Pin<Box<dyn HttpBody<Data = Bytes, Error = BrokenOff> + Send>>),
}

impl Body {
    /// No body.
    pub fn empty() -> Body {
        Body::Full(None)
    }

    /// Whether the body is still being produced.
    pub fn is_stream(&self) -> bool {
        match self {
            Body::Full(_) => false,
            Body::Stream(_) | Body::Foreign(_) => true,
        }
    }

    /// The same body, which keeps a guard alive until it is sent or dropped.
    pub fn with_guard(self, guard: impl Send + 'static) -> Body {
        self.with_end(guard, |guard| async move { drop(guard) })
    }

    /// The same body, which runs `end(value)` after its last frame was taken. If the body is dropped before that, or
    /// breaks off, `value` is dropped and `end` does not run.
    pub fn with_end<T, F>(self, value: T, end: fn(T) -> F) -> Body
    where
        T: Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        if let Body::Foreign(frames) = self {
            let state = (frames, Some(value));
            let frames = futures_util::stream::unfold(state, move |(mut frames, mut value)| async move {
                let frame = frames.frame().await;
                if frame.is_none()
                    && let Some(value) = value.take()
                {
                    end(value).await;
                }
                frame.map(|frame| (frame, (frames, value)))
            });
            return Body::Foreign(Box::pin(StreamBody::new(frames)));
        }
        let state = (self, Some(value));
        Body::stream(futures_util::stream::unfold(state, move |(mut body, mut value)| async move {
            let frame = match &mut body {
                Body::Full(bytes) => bytes.take(),
                Body::Stream(frames) => frames.next().await,
                // Handled above.
                Body::Foreign(_) => None,
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

impl From<ResponseBody> for Body {
    fn from(body: ResponseBody) -> Body {
        match body {
            ResponseBody::Full(bytes) => Body::Full((!bytes.is_empty()).then_some(bytes)),
            ResponseBody::Stream(frames) => Body::Foreign(Box::pin(frames)),
        }
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        match self.get_mut() {
            Body::Full(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Body::Stream(frames) => {
                frames.as_mut().poll_next(context).map(|frame| frame.map(|bytes| Ok(Frame::data(bytes))))
            }
            Body::Foreign(frames) => frames.as_mut().poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Body::Full(bytes) => bytes.is_none(),
            Body::Stream(_) => false,
            Body::Foreign(frames) => frames.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Full(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Body::Stream(_) => SizeHint::default(),
            Body::Foreign(frames) => frames.size_hint(),
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
    /// 413 when the body is larger than [`MAX_REQUEST_BYTES`]; 500 when it ends early; 429 when the bodies of other
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

    /// The body as a stream, for another server: of any size, as fast as that server reads it. It ends with an error when
    /// the client breaks off, the request times out, or the server stops.
    pub(crate) fn into_stream(self) -> UpstreamBody {
        match self {
            RequestBody::Bytes(bytes) => Full::new(bytes).map_err(|never| match never {}).boxed_unsync(),
            RequestBody::Incoming(incoming) if incoming.is_over() => empty_body(),
            RequestBody::Incoming(incoming) => {
                let frames = futures_util::stream::unfold(Some(incoming), |incoming| async {
                    let mut incoming = incoming?;
                    match incoming.frame().await {
                        Ok(frame) => frame.map(|frame| (Ok(frame), Some(incoming))),
                        Err(why) => {
                            let why: Box<dyn std::error::Error + Send + Sync> =
                                Status::from(why).message.into();
                            Some((Err(why), None))
                        }
                    }
                });
                StreamBody::new(frames).boxed_unsync()
            }
        }
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
