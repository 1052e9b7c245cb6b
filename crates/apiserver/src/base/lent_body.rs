//! Request bodies from the network, lent to handlers.

use crate::base::{
    body_budget::{BodyBudget, Charge},
    stop::stopped,
};
use bytes::Bytes;
use http_body::{Body as _, Frame};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use pintle_machinery::{Status, StatusReason};
use std::{convert::Infallible, error::Error as _, io, time::Duration};
use tokio::{
    sync::{oneshot, watch},
    time::{Instant, sleep_until},
};

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
    rest: Option<oneshot::Sender<UnreadRest>>,
    /// Is dropped with the body.
    end: Option<oneshot::Sender<Infallible>>,
}

/// The rest of a body that its handler did not read.
pub(crate) struct UnreadRest {
    pub(crate) incoming: Incoming,
    /// Whether the handler has read from the body.
    pub(crate) is_wanted: bool,
}

impl LentBody {
    /// Lends a body. The receiver gets its rest when it is dropped before its end.
    pub(crate) fn lend(
        incoming: Incoming,
        budget: BodyBudget,
        stopping: watch::Receiver<bool>,
    ) -> (LentBody, oneshot::Receiver<UnreadRest>) {
        let (rest, left) = oneshot::channel();
        let body = LentBody {
            incoming: Some(incoming),
            budget,
            deadline: None,
            stopping,
            is_stopping: false,
            is_wanted: false,
            rest: Some(rest),
            end: None,
        };
        (body, left)
    }

    /// A lower bound of the remaining bytes.
    pub(crate) fn min_size(&self) -> u64 {
        self.incoming.as_ref().map_or(0, |incoming| incoming.size_hint().lower())
    }

    /// Whether nothing of the body is left, or it never had anything.
    pub(crate) fn is_over(&self) -> bool {
        self.incoming.as_ref().is_none_or(Incoming::is_end_stream)
    }

    /// A channel that closes when the handler has read the body, or dropped it.
    pub(crate) fn end(&mut self) -> oneshot::Receiver<Infallible> {
        let (sender, end) = oneshot::channel();
        self.end = Some(sender);
        end
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
    ///
    /// # Errors
    /// When the connection breaks, the deadline passes, or the server stops.
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
            drop(rest.send(UnreadRest { incoming, is_wanted: self.is_wanted }));
        }
    }
}

/// The reason why a body was not read to its end.
pub(crate) enum Unfinished {
    /// The connection broke, or the bytes on it are not valid HTTP.
    Broken(hyper::Error),
    /// The request timeout passed.
    TimedOut,
    /// The server shuts down.
    Stopping,
}

impl From<Unfinished> for Status {
    fn from(why: Unfinished) -> Status {
        match why {
            Unfinished::Broken(error) => unreadable(&error),
            Unfinished::TimedOut => Status::allotted_timeout(),
            Unfinished::Stopping => Status::service_unavailable("apiserver is shutting down."),
        }
    }
}

/// 500 with the reader's error text for a malformed body, and Go's for a body that ends early.
fn unreadable(error: &hyper::Error) -> Status {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    let why = match cause.filter(|cause| cause.kind() == io::ErrorKind::InvalidData) {
        Some(cause) => cause.to_string(),
        None => "unexpected EOF".to_owned(),
    };
    Status::failure(500, StatusReason::Unknown, why)
}
