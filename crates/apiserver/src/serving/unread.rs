//! Discards the rest of request bodies that their handlers did not read to the end.
//!
//! A client that is still sending when the server closes the connection sees a reset and not the response. Therefore
//! the rest of the body is discarded before the response is sent, as Go's server does, within bounds: a client that
//! sends more, or stops sending, loses its connection.

use super::stopped;
use crate::{
    body::{MAX_REQUEST_BYTES, RequestBody, Unfinished},
    body_budget::{BodyBudget, Charge},
    filters::Handler,
    response::Response,
};
use http::{Request, header};
use http_body::{Body as _, Frame};
use http_body_util::BodyExt;
use hyper::body::{Bytes, Incoming};
use std::time::Duration;
use tokio::{
    sync::{oneshot, watch},
    time::{Instant, sleep_until, timeout, timeout_at},
};

/// How many bytes of a body are discarded.
const MAX_DROPPED_BYTES: usize = 4 * MAX_REQUEST_BYTES;
/// The time limit for discarding.
const MAX_TIME: Duration = Duration::from_secs(10);
/// The time limit for the next frame.
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// How long a body may still take after the server is stopped.
const MAX_TIME_AFTER_STOP: Duration = Duration::from_secs(5);

/// A body from the network, lent to a handler. When it is dropped, its unread rest is discarded.
pub struct LentBody {
    incoming: Option<Incoming>,
    budget: BodyBudget,
    /// The deadline for reading the body.
    deadline: Option<Instant>,
    /// Becomes true when the server stops.
    stopping: watch::Receiver<bool>,
    is_stopping: bool,
    is_wanted: bool,
    rest: Option<oneshot::Sender<Rest>>,
}

struct Rest {
    incoming: Incoming,
    is_wanted: bool,
}

impl LentBody {
    /// A lower bound of the remaining bytes.
    pub(crate) fn min_size(&self) -> u64 {
        self.incoming.as_ref().map_or(0, |incoming| incoming.size_hint().lower())
    }

    /// A charge of the memory budget that bodies share.
    pub(crate) fn charge(&self) -> Charge {
        self.budget.charge()
    }

    /// Sets a deadline for reading the body; the earliest one holds.
    pub(crate) fn read_by(&mut self, deadline: Instant) {
        self.deadline = Some(self.deadline.map_or(deadline, |own| own.min(deadline)));
    }

    /// The next frame; `None` at the end.
    pub(crate) async fn frame(&mut self) -> Result<Option<Frame<Bytes>>, Unfinished> {
        self.is_wanted = true;
        let Some(incoming) = self.incoming.as_mut() else { return Ok(None) };
        loop {
            let deadline = self.deadline;
            tokio::select! {
                biased;
                frame = incoming.frame() => return frame.transpose().map_err(Unfinished::Broken),
                () = async { sleep_until(deadline.unwrap_or_else(Instant::now)).await }, if deadline.is_some() => {
                    return Err(if self.is_stopping { Unfinished::Stopping } else { Unfinished::TimedOut });
                }
                () = stopped(&mut self.stopping), if !self.is_stopping => {
                    self.is_stopping = true;
                    let end = Instant::now() + MAX_TIME_AFTER_STOP;
                    self.deadline = Some(deadline.map_or(end, |own| own.min(end)));
                }
            }
        }
    }
}

impl Drop for LentBody {
    fn drop(&mut self) {
        let unread = self.incoming.take().filter(|incoming| !incoming.is_end_stream());
        if let (Some(incoming), Some(rest)) = (unread, self.rest.take()) {
            // The receiver may be gone.
            drop(rest.send(Rest { incoming, is_wanted: self.is_wanted }));
        }
    }
}

/// Answers a request, and discards the unread rest of its body.
pub(super) async fn answer(
    handler: Handler,
    request: Request<Incoming>,
    budget: BodyBudget,
    stopping: watch::Receiver<bool>,
    prepare: impl FnOnce(&mut Request<RequestBody>),
) -> Response {
    let expects = request.headers().contains_key(header::EXPECT);
    let (rest, left) = oneshot::channel();
    let lend = |incoming| LentBody {
        incoming: Some(incoming),
        budget,
        deadline: None,
        stopping,
        is_stopping: false,
        is_wanted: false,
        rest: Some(rest),
    };
    let mut request = request.map(|incoming| RequestBody::Incoming(lend(incoming)));
    prepare(&mut request);
    let response = handler.call(request).await;
    // A handler that has passed the body to a running task leaves no rest here.
    let mut left = left;
    if let Ok(rest) = left.try_recv()
        // A client that waits for `100 Continue` does not get it.
        && (rest.is_wanted || !expects)
    {
        discard(rest.incoming).await;
    }
    response
}

async fn discard(mut incoming: Incoming) {
    let end = Instant::now() + MAX_TIME;
    let mut dropped = 0;
    while dropped <= MAX_DROPPED_BYTES {
        match timeout_at(end, timeout(MAX_PAUSE, incoming.frame())).await {
            Ok(Ok(Some(Ok(frame)))) => dropped += frame.data_ref().map_or(0, Bytes::len),
            Ok(Ok(Some(Err(_)) | None) | Err(_)) | Err(_) => return,
        }
    }
}
