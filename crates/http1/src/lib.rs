//! Heads of HTTP/1 requests, and the ends of their bodies, by the rules of Go's `net/http`.
//!
//! The crate reads bytes and does nothing else: [`head`] finds the end of a head and reads it, and [`Chunks`] finds the end
//! of a chunked body. A head that Go's server and hyper read differently is rewritten, so that both read the same.

mod chunks;
pub mod head;
mod refusal;

pub use chunks::Chunks;
pub use refusal::Refusal;
