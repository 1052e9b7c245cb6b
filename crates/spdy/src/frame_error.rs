//! The ways in which a peer breaks the protocol.

use std::io;

/// The reason why a connection cannot be read any more.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The connection failed, or ended within a frame.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The version of a control frame is not 3.
    #[error("the version {0} is unknown")]
    Version(u16),
    /// The type of a control frame is unknown.
    #[error("the frame type {0} is unknown")]
    Type(u16),
    /// The payload of a control frame does not have the length of its type, or is too long.
    #[error("a control frame of type {kind} has {length} bytes")]
    Length {
        /// The type of the frame.
        kind: u16,
        /// The length of the payload.
        length: usize,
    },
    /// A frame that needs a stream names stream 0.
    #[error("stream 0 does not exist")]
    StreamZero,
    /// The compressed headers are malformed.
    #[error("the headers cannot be decompressed")]
    Compression,
    /// The headers are malformed, or longer than the limit.
    #[error("the headers are malformed or too long")]
    Headers,
    /// The peer sends frames that need an answer and does not read the answers.
    #[error("the peer does not read the answers to its frames")]
    Flood,
}
