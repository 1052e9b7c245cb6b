//! The disk of one directory, as tests use it.

use crate::{
    disk::{Disk, Fault},
    image::{Image, Operation, Trace},
    vfs,
};
use std::{
    io,
    path::Path,
    sync::{Arc, atomic::Ordering},
};

/// The simulated disk of one directory. Dropping it removes the faults.
pub struct FaultDisk {
    disk: Arc<Disk>,
}

impl FaultDisk {
    /// A disk for the databases that are opened in `directory` from now on.
    ///
    /// # Panics
    /// When SQLite refuses the layer.
    pub fn new(directory: &Path) -> FaultDisk {
        vfs::register();
        FaultDisk { disk: Disk::new(directory) }
    }

    /// Adds a fault.
    pub fn fail(&self, fault: Fault) {
        self.disk.state.lock().faults.push(fault);
    }

    /// Ends all faults.
    pub fn heal(&self) {
        self.disk.state.lock().faults.clear();
    }

    /// The number of calls that a fault made fail.
    pub fn failed(&self) -> u64 {
        self.disk.failed.load(Ordering::Acquire)
    }

    /// Begins a record. The current contents of the directory count as durable.
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

    /// Adds a mark to the record, after the operations so far.
    pub fn mark(&self, mark: u64) {
        if let Some(trace) = &mut self.disk.state.lock().trace {
            trace.operations.push(Operation::Mark(mark));
        }
    }

    /// Ends the record and returns it.
    pub fn recorded(&self) -> Option<Trace> {
        self.disk.state.lock().trace.take()
    }
}
