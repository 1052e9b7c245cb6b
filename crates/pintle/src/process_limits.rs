//! Derives the maximum of connections from the process's file descriptors and memory, and that of long-running requests
//! from its memory.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;

/// The memory of one connection with buffers in use, in bytes.
const CONNECTION_BYTES: u64 = 128 << 10;
/// Connections may take one part in this many of the memory.
const MEMORY_PART: u64 = 4;
/// The memory of one long-running request, in bytes: twice that of a watch.
const LONG_RUNNING_BYTES: u64 = 16 << 10;
/// Long-running requests may take one part in this many of the memory.
const LONG_RUNNING_PART: u64 = 2;
/// The bounds of the number of file descriptors that are reserved for the store, webhooks and files.
const RESERVED_DESCRIPTORS: std::ops::RangeInclusive<u64> = 32..=1024;

/// Raises the soft limit of open files to the hard limit: the soft limit protects programs that use `select`.
pub fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })
    {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
}

/// The maximum of connections that the process can serve.
pub(crate) fn max_connections() -> usize {
    connections_for(getrlimit(Resource::Nofile).current, memory())
}

/// The maximum of long-running requests that the process can serve.
pub(crate) fn max_long_running() -> usize {
    let requests = memory().map_or(u64::MAX, |memory| memory / LONG_RUNNING_PART / LONG_RUNNING_BYTES);
    usize::try_from(requests).unwrap_or(usize::MAX).max(1)
}

fn connections_for(descriptors: Option<u64>, memory: Option<u64>) -> usize {
    let descriptors = descriptors.map(|descriptors| {
        let reserved = (descriptors / 8).clamp(*RESERVED_DESCRIPTORS.start(), *RESERVED_DESCRIPTORS.end());
        descriptors.saturating_sub(reserved)
    });
    let memory = memory.map(|memory| memory / MEMORY_PART / CONNECTION_BYTES);
    let connections = descriptors.into_iter().chain(memory).min().unwrap_or(u64::MAX);
    usize::try_from(connections).unwrap_or(usize::MAX).max(1)
}

/// The memory of the machine in bytes, or of the control group if that is less.
fn memory() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
    });
    let group = fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let group = group.and_then(|text| text.trim().parse().ok());
    machine.into_iter().chain(group).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_and_memory_for_the_rest() {
        // (descriptors, memory, connections)
        let rows = [
            (Some(20), None, 1),
            (Some(1024), None, 896),
            (Some(1 << 20), Some(16 << 30), 32_768),
            (Some(1 << 20), None, (1 << 20) - 1024),
            (None, Some(1 << 30), 2048),
        ];
        for (descriptors, memory, connections) in rows {
            assert_eq!(connections_for(descriptors, memory), connections, "{descriptors:?} {memory:?}");
        }
        assert!(memory().is_some() && max_connections() > 1);
    }
}
