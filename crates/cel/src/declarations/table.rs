//! The form of the tables of functions.

/// A table of functions with their overloads: an id and a signature, `(arguments) -> result` or, for a method,
/// `target.(arguments) -> result`.
pub(super) type Table = &'static [(&'static str, &'static [(&'static str, &'static str)])];
