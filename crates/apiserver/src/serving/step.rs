//! The action on bytes that were inspected in front of the HTTP library.

use bytes::BytesMut;

/// The action on the first of the inspected bytes.
#[derive(Debug)]
pub(super) enum Step {
    /// This many pass unchanged.
    Pass(usize),
    /// This many are replaced.
    Replace(usize, BytesMut),
    /// More bytes are needed.
    More,
    /// None of them pass.
    Stop,
}
