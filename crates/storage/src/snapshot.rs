//! Snapshots: all keys under a prefix at one revision, in a file.
//!
//! The file has every key with its stored bytes (encoded, encrypted or not), its two revisions and its expiry, so a
//! snapshot of one engine can be restored into another without conversion. `docs/snapshot.md` describes the format
//! and the guarantees of a restore.
//!
//! - [`SnapshotWriter`] and [`SnapshotReader`]: the format, streamed; the reader validates everything. [`verify`]
//!   reads a whole file.
//! - [`SnapshotFile`]: a file that gets its name only when it is complete.
//! - [`save_snapshot`] and [`restore_snapshot`]: from and into any engine that is a [`SnapshotSource`] and a
//!   [`RestoreTarget`]. The embedded engine has its own implementation,
//!   [`EmbeddedSnapshot`](crate::EmbeddedSnapshot), which needs no running server and disturbs none, and which keeps
//!   revisions unchanged.
//!
//! Invariants of a snapshot, which the writer establishes and the reader checks: keys ascend and have the header's
//! prefix; no revision is zero, and none is greater than the header's; counts and the SHA-256 of the whole file are
//! at its end, and nothing follows them.

mod error;
mod file;
mod format;
mod reader;
mod restore;
mod save;
mod target;
mod writer;

#[cfg(test)]
mod tests;

pub use error::{RestoreError, SaveError, SnapshotError};
pub use file::SnapshotFile;
pub use format::{FORMAT_VERSION, SnapshotHeader, SnapshotRecord, SnapshotSummary, ValueForms};
pub use reader::{SnapshotReader, open_verified, verify};
pub use restore::{RestoreOptions, RestorePhase, Restored, restore_snapshot, unfinished_restore};
pub use save::{SnapshotPage, SnapshotSource, save_snapshot};
pub use target::RestoreTarget;
pub use writer::SnapshotWriter;

pub(crate) use format::now_milliseconds;
pub(crate) use restore::raised;
