//! Simulates a disk that fails on command, and that records writes and syncs.
//!
//! [`FaultDisk::new`] puts a layer under SQLite's files of one directory ([`mod@vfs`], the only unsafe code here), so
//! that code that opens a database there needs no change. The layer forwards every call to the real files,
//! and
//!
//! - fails the calls that a [`Fault`] selects, with errors of the operating system ([`FaultDisk::fail`]);
//! - records writes, truncations, syncs and deletions ([`FaultDisk::record`]). A [`Trace`] produces [`Image`]s: the
//!   possible contents of the disk after a power cut at some point, with any subset of the unsynced sectors.
//!
//! The layer records the calls of SQLite, and for other files the calls of [`beside`]; renames and syncs by other code
//! are not recorded. Memory shared between connections (`-shm`) is forwarded and never part of an image, since SQLite
//! recreates it.

pub mod beside;
mod disk;
mod fault_disk;
mod image;
mod vfs;

pub use disk::{Call, Effect, Fault};
pub use fault_disk::FaultDisk;
pub use image::{Image, Operation, Random, Trace};
