//! The reasons why no more frames can be read.

use std::io;

/// The reason why no more frames can be read from a connection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The connection failed, or ended within a frame.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A client's frame must be masked, and a server's must not.
    #[error("the mask of a frame is missing or unexpected")]
    Mask,
    /// A reserved bit of the header is set; no extension was negotiated.
    #[error("a reserved bit of a frame is set")]
    ReservedBit,
    /// The operation code has no meaning.
    #[error("the operation code {0} is unknown")]
    UnknownOpcode(u8),
    /// A control frame is longer than 125 bytes, or is fragmented.
    #[error("a control frame is too long or fragmented")]
    ControlFrame,
    /// A continuation without a beginning, or a beginning within a message.
    #[error("the fragments of a message are out of order")]
    Fragments,
    /// The payload of a frame is longer than the limit.
    #[error("a frame has {0} bytes")]
    TooLarge(u64),
}
