//! A text of a tree.

/// A text. One of up to 24 bytes is kept in place.
pub use compact_str::CompactString as Text;
