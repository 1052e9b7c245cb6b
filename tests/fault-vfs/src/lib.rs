//! A disk that fails on command, and that remembers what was written and synced.
//!
//! [`FaultDisk::new`] puts a layer under SQLite's files of one directory ([`mod@vfs`], the only unsafe code here): what
//! opens a database there after that needs to know nothing of it. The layer passes every call on to the real files,
//! and
//!
//! - fails those that a [`Fault`] names, as the operating system would ([`FaultDisk::fail`]);
//! - records writes, truncations, syncs and deletions ([`FaultDisk::record`]). From a [`Trace`] come [`Image`]s: what
//!   the disk may hold when the power is cut at some point, when of what was not synced any sectors were written.
//!
//! It knows what SQLite does, and of files beside SQLite's what [`beside`] is told: files renamed or synced by others are
//! not its business. Memory shared between
//! connections (`-shm`) is passed through and never part of an image, since SQLite makes it anew.

pub mod beside;
mod disk;
mod image;
mod vfs;

pub use disk::{Call, Effect, Fault, FaultDisk};
pub use image::{Image, Operation, Random, Trace};
