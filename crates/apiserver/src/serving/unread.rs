//! Bodies that a request's handler did not want to the end.
//!
//! A client that is still sending sees a broken connection, and not the answer, when the server closes it. So what comes
//! is thrown away before the answer goes out, as Go's server does, within bounds: who sends more, or stops sending, loses
//! the connection.

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

/// How much of a body is thrown away.
const MAX_DROPPED_BYTES: usize = 4 * MAX_REQUEST_BYTES;
/// How long that may take.
const MAX_TIME: Duration = Duration::from_secs(10);
/// How long the next piece may take.
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// How long a body may still take when the server is told to stop.
const MAX_TIME_AFTER_STOP: Duration = Duration::from_secs(5);

/// A body from the network, lent to a handler. What it has not read when it is dropped is thrown away.
pub struct LentBody {
    incoming: Option<Incoming>,
    budget: BodyBudget,
    /// When it has to be read.
    deadline: Option<Instant>,
    /// Turns true when the server stops.
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
    /// How many bytes there are at least.
    pub(crate) fn min_size(&self) -> u64 {
        self.incoming.as_ref().map_or(0, |incoming| incoming.size_hint().lower())
    }

    /// What it may take of the memory that bodies share.
    pub(crate) fn charge(&self) -> Charge {
        self.budget.charge()
    }

    /// The body has to be read until then.
    pub(crate) fn read_by(&mut self, deadline: Instant) {
        self.deadline = Some(self.deadline.map_or(deadline, |own| own.min(deadline)));
    }

    /// The next piece; `None` at the end.
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
            // Nobody may be there any more who cares.
            drop(rest.send(Rest { incoming, is_wanted: self.is_wanted }));
        }
    }
}

/// Answers a request, and reads what the handler did not want of its body.
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
    // Where the handler has left the body to somebody who is still at it, there is nothing here.
    let mut left = left;
    if let Ok(rest) = left.try_recv()
        // A client that has to be asked for its body is not asked.
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
