//! The limits of compiled patterns.

/// The maximum memory of a compiled pattern, in bytes.
pub(super) const SIZE_LIMIT: usize = 8 << 20;
/// The maximum nesting depth of the translated pattern.
pub(super) const NEST_LIMIT: u32 = 1000;
/// The maximum nesting depth of a pattern over letters, whose groups are written out.
pub(super) const LETTERS_NEST_LIMIT: u32 = 4 * NEST_LIMIT;
/// The maximum memory that matching caches for a pattern, in bytes.
pub(super) const CACHE_LIMIT: usize = 256 << 10;
