//! Runs attacks on a server, each with limits of its cost: response time of `/livez`, CPU time and memory of the
//! process.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops at anything unexpected")]

mod large_lists;
mod lists;
mod memory;
mod relists;
mod requests;
mod stored;
mod streams;
mod sweep;

type Result<T = ()> = std::result::Result<T, pintle_harness::Error>;
