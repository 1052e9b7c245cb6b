//! Properties of custom resources, on objects made by rules.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests")]

mod objects;
mod smoke;
