//! Derives the maximum of connections from the process's file descriptors and memory, and that of long-running requests
//! from its memory.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::system::sysinfo;
use std::{fs, path::Path};

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

/// The memory of the machine in bytes, or of the control groups of the process if that is less. The kernel is asked for the
/// first, not `/proc/meminfo`: services may not see that.
fn memory() -> Option<u64> {
    let machine = sysinfo();
    #[allow(clippy::useless_conversion, reason = "the types of the fields depend on the platform")]
    let machine = u64::from(machine.totalram).checked_mul(machine.mem_unit.into());
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    machine.into_iter().chain(group_memory(&groups, Path::new("/sys/fs/cgroup"))).min()
}

/// The least limit on memory, in bytes, of the control groups in `groups`, the text of `/proc/self/cgroup`, and of those
/// around them. Both versions of control groups count (`cgroups(7)`).
fn group_memory(groups: &str, root: &Path) -> Option<u64> {
    let limits = groups.lines().flat_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
        let (hierarchy, file) = match controllers {
            // Version 2.
            "" => (root.to_owned(), "memory.max"),
            list if list.split(',').any(|name| name == "memory") => {
                (root.join("memory"), "memory.limit_in_bytes")
            }
            _ => return Vec::new(),
        };
        // A path that begins outside of the process's own view of the groups has no files there.
        let groups = Path::new(path).ancestors().filter_map(|group| group.strip_prefix("/").ok());
        let files = groups.map(|group| hierarchy.join(group).join(file));
        files.filter_map(|file| fs::read_to_string(file).ok()?.trim().parse().ok()).collect::<Vec<u64>>()
    });
    limits.min()
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
        assert!(memory().is_some_and(|memory| memory > 1 << 20) && max_connections() > 1);
    }

    #[test]
    fn the_least_limit_of_the_control_groups_counts() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("system.slice/pintle.service/memory.max", "2147483648\n");
        put("system.slice/memory.max", "max\n");
        put("memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
        put("memory/a/memory.limit_in_bytes", "4096\n");
        // (/proc/self/cgroup, limit)
        let rows = [
            ("0::/system.slice/pintle.service\n", Some(2 << 30)),
            ("0::/system.slice\n", None),
            ("0::/\n", None),
            ("12:cpu,cpuacct:/a/b\n11:memory:/a/b\n0::/system.slice\n", Some(4096)),
            ("0::/../other\n", None),
            ("", None),
            ("nonsense\n::\n", None),
        ];
        for (groups, limit) in rows {
            assert_eq!(group_memory(groups, root.path()), limit, "{groups:?}");
        }
        put("memory.max", "1073741824\n");
        assert_eq!(group_memory("0::/\n", root.path()), Some(1 << 30), "a container's own group");
        assert_eq!(group_memory("0::/system.slice/pintle.service\n", root.path()), Some(1 << 30));
    }
}
