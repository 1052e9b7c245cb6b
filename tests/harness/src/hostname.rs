//! UTS namespaces: servers of one machine that need different host names.

use std::{ffi::OsStr, process::Command};

/// A command that runs a program on a host of this name. It needs `unshare` and `hostname`.
pub fn with_hostname(name: &str, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("unshare");
    let script = "hostname \"$0\" && exec \"$@\"";
    command.args(["--uts", "--map-root-user", "sh", "-c", script, name]).arg(program);
    command
}
