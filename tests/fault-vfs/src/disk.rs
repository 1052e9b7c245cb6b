//! What is to fail, and what was done.

use crate::{
    image::{Image, Operation, Trace},
    vfs,
};
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    fs, io,
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
    /// What was written is made durable.
    Sync,
    /// A file is cut.
    Truncate,
}

/// How a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// `EIO`; nothing was done.
    IoError,
    /// `ENOSPC`; nothing was done.
    DiskFull,
    /// A write of half the bytes, and then `ENOSPC`.
    ShortWrite,
    /// `EROFS` or `EACCES`; nothing was done.
    ReadOnly,
}

/// Which calls fail.
#[derive(Debug, Clone)]
pub struct Fault {
    /// Calls of this kind
    pub call: Call,
    /// to files whose name ends so (`-wal`, `.db`; all with an empty one);
    pub file: &'static str,
    /// but so many pass first;
    pub after: u64,
    /// then so many fail,
    pub times: u64,
    /// in this way.
    pub effect: Effect,
}

impl Fault {
    /// Every call of this kind to any file fails, until [`FaultDisk::heal`].
    pub fn every(call: Call, effect: Effect) -> Fault {
        Fault { call, file: "", after: 0, times: u64::MAX, effect }
    }
}

/// The files of one directory. Dropping it takes the faults away.
pub struct FaultDisk {
    disk: Arc<Disk>,
}

/// What [`FaultDisk`] and the open files share.
pub(crate) struct Disk {
    directory: PathBuf,
    state: Mutex<State>,
    failed: AtomicU64,
}

#[derive(Default)]
struct State {
    faults: Vec<Fault>,
    trace: Option<Trace>,
    /// How long each file is after what was recorded.
    lengths: BTreeMap<String, u64>,
}

/// All there are in this process.
static DISKS: Mutex<Vec<Weak<Disk>>> = Mutex::new(Vec::new());

impl FaultDisk {
    /// Watches over the databases that are opened in `directory` from now on.
    ///
    /// # Panics
    /// When SQLite does not take the layer.
    pub fn new(directory: &Path) -> FaultDisk {
        vfs::register();
        let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
        let disk = Arc::new(Disk { directory, state: Mutex::default(), failed: AtomicU64::new(0) });
        let mut disks = DISKS.lock();
        disks.retain(|disk| disk.strong_count() > 0);
        disks.push(Arc::downgrade(&disk));
        FaultDisk { disk }
    }

    /// Makes calls fail, besides those that fail already.
    pub fn fail(&self, fault: Fault) {
        self.disk.state.lock().faults.push(fault);
    }

    /// Ends all faults.
    pub fn heal(&self) {
        self.disk.state.lock().faults.clear();
    }

    /// How many calls have failed on command.
    pub fn failed(&self) -> u64 {
        self.disk.failed.load(Ordering::Acquire)
    }

    /// Begins a record. What is in the directory now counts as durable.
    ///
    /// # Errors
    /// When the files cannot be read.
    pub fn record(&self) -> io::Result<()> {
        let mut state = self.disk.state.lock();
        let base = Image::read(&self.disk.directory)?;
        state.lengths = base.files.iter().map(|(name, bytes)| (name.clone(), bytes.len() as u64)).collect();
        state.trace = Some(Trace { base, operations: Vec::new() });
        Ok(())
    }

    /// Notes in the record that something happened after what is in it so far.
    pub fn mark(&self, mark: u64) {
        if let Some(trace) = &mut self.disk.state.lock().trace {
            trace.operations.push(Operation::Mark(mark));
        }
    }

    /// Ends the record.
    pub fn recorded(&self) -> Option<Trace> {
        self.disk.state.lock().trace.take()
    }
}

impl Disk {
    /// Whose file a path is.
    pub(crate) fn of(path: &Path) -> Option<(Arc<Disk>, String)> {
        let name = path.file_name()?.to_str()?.to_owned();
        let directory = path.parent()?;
        let disks = DISKS.lock();
        let disk = disks.iter().filter_map(Weak::upgrade).find(|disk| disk.directory == directory)?;
        Some((disk, name))
    }

    /// How a call to a file is to fail, if it is.
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

    /// Records what is about to be done to a file.
    pub(crate) fn note(&self, operation: impl FnOnce() -> Operation) {
        let mut state = self.state.lock();
        let State { trace: Some(trace), lengths, .. } = &mut *state else { return };
        let operation = operation();
        // A file is written by one connection at a time; others may open it meanwhile.
        if let Operation::Write { file, .. } | Operation::Truncate { file, .. } = &operation {
            let path = self.directory.join(file);
            let length = lengths.entry(file.clone()).or_default();
            // Somebody may have cut the file beside SQLite; whoever does that syncs it.
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
