//! Whether containers may be privileged: `--allow-privileged`.
//!
//! A setting of the process, as in kube-apiserver: pods and the templates of all workloads are validated alike.

use std::sync::atomic::{AtomicBool, Ordering};

static IS_ALLOWED: AtomicBool = AtomicBool::new(true);

/// Refuses privileged containers from now on, in all servers of this process.
pub fn refuse_privileged_containers() {
    IS_ALLOWED.store(false, Ordering::Relaxed);
}

pub(super) fn is_allowed() -> bool {
    IS_ALLOWED.load(Ordering::Relaxed)
}
