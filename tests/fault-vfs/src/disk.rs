//! Holds the faults to inject and the record of operations, for the layers that ask for them.

use crate::image::{Operation, Trace};
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

/// A kind of call to the file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// A file is opened.
    Open,
    /// Bytes are read.
    Read,
    /// Bytes are written.
    Write,
    /// Written bytes are made durable.
    Sync,
    /// A file is truncated.
    Truncate,
}

/// How a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// `EIO`, without an effect.
    IoError,
    /// `ENOSPC`, without an effect.
    DiskFull,
    /// A write of half the bytes, then `ENOSPC`.
    ShortWrite,
    /// `EROFS` or `EACCES`, without an effect.
    ReadOnly,
    /// A panic of the calling thread. A call of SQLite, which cannot unwind, gets `EIO`.
    Panic,
}

/// Selects the calls that fail.
#[derive(Debug, Clone)]
pub struct Fault {
    /// The kind of the calls.
    pub call: Call,
    /// The end of the names of the files (`-wal`, `.db`); empty for all files.
    pub file: &'static str,
    /// The number of matching calls that succeed first.
    pub after: u64,
    /// The number of calls that fail after them.
    pub times: u64,
    /// The way in which they fail.
    pub effect: Effect,
}

impl Fault {
    /// A fault of every call of this kind to any file, until [`crate::FaultDisk::heal`].
    pub fn every(call: Call, effect: Effect) -> Fault {
        Fault { call, file: "", after: 0, times: u64::MAX, effect }
    }
}

/// The state that [`crate::FaultDisk`] and the open files share.
pub(crate) struct Disk {
    pub(crate) directory: PathBuf,
    pub(crate) state: Mutex<State>,
    /// The number of calls that a fault made fail.
    pub(crate) failed: AtomicU64,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) faults: Vec<Fault>,
    pub(crate) trace: Option<Trace>,
    /// The length of each file after the recorded operations, in bytes.
    pub(crate) lengths: BTreeMap<String, u64>,
}

/// All disks of this process.
static DISKS: Mutex<Vec<Weak<Disk>>> = Mutex::new(Vec::new());

impl Disk {
    /// A disk without faults, for the files that are opened in `directory` from now on.
    pub(crate) fn new(directory: &Path) -> Arc<Disk> {
        let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
        let disk = Arc::new(Disk { directory, state: Mutex::default(), failed: AtomicU64::new(0) });
        let mut disks = DISKS.lock();
        disks.retain(|disk| disk.strong_count() > 0);
        disks.push(Arc::downgrade(&disk));
        disk
    }

    /// The disk of a path, and the name of its file.
    pub(crate) fn of(path: &Path) -> Option<(Arc<Disk>, String)> {
        let name = path.file_name()?.to_str()?.to_owned();
        let directory = path.parent()?;
        let disks = DISKS.lock();
        let disk = disks.iter().filter_map(Weak::upgrade).find(|disk| disk.directory == directory)?;
        Some((disk, name))
    }

    /// The failure of a call to a file, if a fault selects it.
    pub(crate) fn fault(&self, call: Call, file: &str) -> Option<Effect> {
        let mut state = self.state.lock();
        let mut effect = None;
        for fault in &mut state.faults {
            if fault.call != call || !file.ends_with(fault.file) {
                continue;
            }
            if fault.after > 0 {
                fault.after -= 1;
            } else if fault.times > 0 && effect.is_none() {
                fault.times -= 1;
                effect = Some(fault.effect);
            }
        }
        if effect.is_some() {
            self.failed.fetch_add(1, Ordering::AcqRel);
        }
        effect
    }

    /// Records an operation on a file, before it is done.
    pub(crate) fn note(&self, operation: impl FnOnce() -> Operation) {
        let mut state = self.state.lock();
        let State { trace: Some(trace), lengths, .. } = &mut *state else { return };
        let operation = operation();
        // A file is written by one connection at a time; others may open it meanwhile.
        if let Operation::Write { file, .. } | Operation::Truncate { file, .. } = &operation {
            let path = self.directory.join(file);
            let length = lengths.entry(file.clone()).or_default();
            // Code other than SQLite may have truncated the file; it syncs the file, too.
            let real = fs::metadata(path).map_or(0, |metadata| metadata.len());
            if real < *length {
                trace.operations.push(Operation::Truncate { file: file.clone(), length: real });
                trace.operations.push(Operation::Sync { file: file.clone() });
                *length = real;
            }
            match &operation {
                Operation::Write { offset, bytes, .. } => {
                    *length = (*length).max(offset + bytes.len() as u64);
                }
                Operation::Truncate { length: to, .. } => *length = *to,
                _ => {}
            }
        }
        trace.operations.push(operation);
    }
}
