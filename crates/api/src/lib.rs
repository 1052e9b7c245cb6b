//! The built-in kinds: declarations, defaults, validation, strategies, columns.

pub mod core;
