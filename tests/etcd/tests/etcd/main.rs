//! Tests the etcd3 engine against real etcd servers.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops at anything unexpected")]

mod contract;
mod engine;
mod faults;
mod setup;
mod snapshot;
