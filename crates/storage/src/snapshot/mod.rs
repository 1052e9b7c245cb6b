//! Snapshots: all keys under a prefix as of one revision, in a file.
//!
//! The file has every key with its bytes as they are stored (encoded, encrypted or not), its two revisions and the time
//! it expires, so a snapshot of one engine can be restored into another with nothing converted. `docs/snapshot.md` tells
//! the format and what a restore promises.
//!
//! - [`SnapshotWriter`] and [`SnapshotReader`]: the format, streamed; a reader trusts nothing. [`verify`] reads all of it.
//! - [`SnapshotFile`]: a file that has its name only when it is whole.
//! - [`save_snapshot`] and [`restore_snapshot`]: from and into any engine that is a [`SnapshotSource`] and a
//!   [`RestoreTarget`].
//!   The embedded engine has its own ways, [`EmbeddedSnapshot`](crate::EmbeddedSnapshot), which need no running server
//!   and disturb none, and which keep revisions as they are.
//!
//! Invariants of a snapshot, which the writer establishes and the reader checks: keys ascend and have the header's prefix;
//! no revision is zero, and none is newer than the header's; counts and the SHA-256 of the whole file are at its end, and
//! nothing follows them.

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
