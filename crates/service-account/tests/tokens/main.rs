//! Tests of tokens with objects in memory.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod bound;
mod external;
mod keys;
mod legacy;
mod objects;
mod smoke;
