//! The deadlines of a request and of its response.

use std::time::Duration;
use tokio::time::Instant;

/// The time by which a request has to be answered; an extension of every request that is not long-running.
#[derive(Clone, Copy)]
pub(crate) struct RequestDeadline {
    /// When the request was received.
    pub(crate) received: Instant,
    /// The timeout, counted from then.
    pub(crate) limit: Duration,
}

impl RequestDeadline {
    /// The deadline.
    pub(crate) fn at(self) -> Instant {
        self.received + self.limit
    }
}

/// The deadline for sending a response body; a response extension. Without it only the connection's limits hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SendDeadline(pub(crate) Instant);
