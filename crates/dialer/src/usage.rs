//! Whether a kept connection has been used.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Whether a connection has had a response: one that never had was not closed because it was idle. Clones belong to the
/// same connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Usage(Arc<AtomicBool>);

impl Usage {
    /// Notes that a response began.
    pub(crate) fn note_response(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether a response has begun.
    pub(crate) fn has_had_response(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
