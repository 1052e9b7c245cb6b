//! The reasons why a stream is not opened.

/// The reason why a stream was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The peer has refused the stream.
    #[error("Stream reset")]
    Reset,
    /// The session has ended.
    #[error("the session has ended")]
    Ended,
    /// The session has [`MAX_STREAMS`](crate::MAX_STREAMS) streams, or has had all that it could have.
    #[error("Unable to get new stream id")]
    TooMany,
}
