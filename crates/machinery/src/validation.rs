//! Rules for names, labels and metadata that every kind shares.

mod names;

pub use names::*;
