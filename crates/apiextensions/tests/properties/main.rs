//! Property tests of custom resources, on generated objects.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests")]

mod objects;
mod smoke;
