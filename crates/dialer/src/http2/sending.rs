//! Sends the body of a request.

use crate::UpstreamBody;
use bytes::Bytes;
use futures_util::FutureExt;
use h2::{Reason, SendStream};
use http_body::{Body, Frame};
use std::{
    future::poll_fn,
    pin::Pin,
    task::{Poll, ready},
};
use tokio::task::AbortHandle;

/// Sends a body as fast as the server takes it. A body that is there already is sent at once, and any other by a task.
/// A body that fails resets the stream.
pub(super) fn send(body: UpstreamBody, stream: SendStream<Bytes>) -> Option<AbortHandle> {
    let mut sending = Box::pin(send_all(body, stream));
    match sending.as_mut().now_or_never() {
        Some(()) => None,
        None => Some(tokio::spawn(sending).abort_handle()),
    }
}

async fn send_all(mut body: UpstreamBody, mut stream: SendStream<Bytes>) {
    loop {
        let frame = match next(&mut body, &mut stream).await {
            Next::Frame(frame) => frame,
            // The receiver of the response has the reason.
            Next::Reset => return,
            Next::Failed => return stream.send_reset(Reason::CANCEL),
        };
        let sent = match frame.map(Frame::into_data) {
            None => return drop(stream.send_data(Bytes::new(), true)),
            Some(Ok(data)) => {
                let is_last = body.is_end_stream();
                if !data.is_empty() && !has_room(&mut stream).await {
                    return;
                }
                // Bytes beyond the window wait in the stream, and the next piece with them.
                stream.send_data(data, is_last).map(|()| is_last)
            }
            Some(Err(frame)) => match frame.into_trailers() {
                Ok(trailers) => return drop(stream.send_trailers(trailers)),
                Err(_) => Ok(false),
            },
        };
        match sent {
            Ok(false) => {}
            Ok(true) | Err(_) => return,
        }
    }
}

enum Next {
    /// The next frame of the body; `None` at its end.
    Frame(Option<Frame<Bytes>>),
    /// The server wants no more.
    Reset,
    /// The body cannot be continued.
    Failed,
}

async fn next(body: &mut UpstreamBody, stream: &mut SendStream<Bytes>) -> Next {
    poll_fn(|context| {
        if stream.poll_reset(context).is_ready() {
            return Poll::Ready(Next::Reset);
        }
        Poll::Ready(match ready!(Pin::new(&mut *body).poll_frame(context)).transpose() {
            Ok(frame) => Next::Frame(frame),
            Err(_) => Next::Failed,
        })
    })
    .await
}

/// Waits until the server takes at least a byte. Returns whether it does.
async fn has_room(stream: &mut SendStream<Bytes>) -> bool {
    stream.reserve_capacity(1);
    while stream.capacity() == 0 {
        let capacity = poll_fn(|context| match stream.poll_reset(context) {
            Poll::Ready(_) => Poll::Ready(None),
            Poll::Pending => stream.poll_capacity(context),
        });
        match capacity.await {
            Some(Ok(_)) => {}
            Some(Err(_)) | None => return false,
        }
    }
    true
}
