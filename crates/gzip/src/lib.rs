//! Gzip made of parts that are compressed separately (<https://www.rfc-editor.org/rfc/rfc1952>).
//!
//! A [`Part`] is compressed once and can be in many bodies: what most of a list or of a document consists of is not
//! compressed again when another part changes. A body is [`HEADER`], the deflate blocks of its parts, and the bytes of
//! [`Trailer::finish`].

mod part;
mod part_writer;
mod trailer;

pub use part::Part;
pub use part_writer::{Observer, PartWriter};
pub use trailer::Trailer;

/// The first bytes of a body: deflate, no name, no time, unknown system.
pub const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
