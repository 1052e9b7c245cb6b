//! The deadlines of a request and of its response.

use std::time::Duration;
use tokio::time::Instant;

/// The time of a write, counted from when its request was received.
const WRITE_LIMIT: Duration = Duration::from_secs(34);

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

    /// The time by which a write must be answered. Kube-apiserver gives handlers no more time than this, whatever the
    /// timeout of the request is.
    pub(crate) fn of_write(self) -> Instant {
        self.received + self.limit.min(WRITE_LIMIT)
    }

    /// The same for a write whose request has more time.
    pub(crate) fn of_long_write(self) -> Option<Instant> {
        (self.limit > WRITE_LIMIT).then(|| self.of_write())
    }
}

/// The deadline for sending a response body; a response extension. Without it only the connection's limits hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SendDeadline(pub(crate) Instant);
