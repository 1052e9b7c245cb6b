//! SPDY/3.1 ([draft 3.1](https://www.chromium.org/spdy/spdy-protocol/spdy-protocol-draft3-1/)) over a connection that HTTP
//! has upgraded, as nodes and clients of Kubernetes use it for streams.
//!
//! A [`Session`] opens streams and, on the server's side, accepts them. The peers of Kubernetes have no flow control: they
//! send no `WINDOW_UPDATE` and heed none. So a session does the same. Each stream has a short queue; when its reader does
//! not take what came, the session stops reading its connection, which stops the peer from sending.
//!
//! Everything that a peer sends is bounded: the frames and headers in bytes, also decompressed; the streams, and the
//! answers that wait for the peer to read, in number. A session takes some tens of kilobytes, and as much again for a
//! stream whose reader is slow; idle ones take less.
//!
//! The crate does not know what the streams carry.

mod dictionary;
mod frame;
mod frame_error;
mod frame_reader;
mod frame_writer;
mod headers;
mod inflater;
mod open_error;
mod role;
mod session;
mod session_end;
mod shared;
mod stream;
mod streams;

pub use frame_error::FrameError;
pub use headers::{Headers, MAX_HEADER_BYTES};
pub use open_error::OpenError;
pub use session::Session;
pub use session_end::SessionEnd;
pub use stream::{ReadError, Stream, StreamReader, StreamWriter};
pub use streams::MAX_STREAMS;
