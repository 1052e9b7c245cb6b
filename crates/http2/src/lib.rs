//! Header blocks of HTTP/2 requests by the rules of Go's `net/http`.
//!
//! The crate reads bytes and does nothing else. [`HeaderBlocks`] decodes the blocks of a connection in front of an HTTP library. A
//! block that Go's server and the library read differently is rewritten, so that both read the same, and a request that Go's
//! server refuses becomes one for which the library resets the stream. The library would close the connection for some of
//! them, and with it the requests of other users behind the same proxy.

mod block;
mod huffman;
mod instructions;
mod refusal;
mod table;

pub use block::{BlockKind, HeaderBlocks, Judgement};
pub use refusal::Refusal;
