//! How a session ended.

use crate::FrameError;
use std::sync::Arc;

/// How a session ended.
#[derive(Clone, Debug)]
pub enum SessionEnd {
    /// This side closed it.
    Closed,
    /// The peer said that it ends the session.
    GoAway,
    /// The connection ended, between frames.
    Disconnected,
    /// The connection failed, or the peer broke the protocol.
    Failed(Arc<FrameError>),
}
