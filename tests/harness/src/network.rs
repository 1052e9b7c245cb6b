//! Network namespaces: API objects may not name loopback addresses, so servers that they name need other ones.

use std::{env, ffi::OsStr, process::Command};

/// The addresses of a network of its own, which reach nothing outside it.
pub const ADDRESSES: [&str; 4] = ["10.99.0.1", "10.99.0.2", "10.99.0.3", "10.0.0.77"];

/// Set for the processes in a network of their own.
const VARIABLE: &str = "PINTLE_NETNS";

/// Whether this process is in a network of its own.
pub fn is_in_own_network() -> bool {
    env::var_os(VARIABLE).is_some()
}

/// A command that runs a program in a new network namespace, whose loopback interface has [`ADDRESSES`] too. Nothing is
/// added to the machine's own network. It needs `unshare` and `ip`.
pub fn in_own_network(program: impl AsRef<OsStr>) -> Command {
    let script = format!(
        "set -e; ip link set lo up; for address in {}; do ip addr add $address/32 dev lo; done; exec \"$@\"",
        ADDRESSES.join(" ")
    );
    let mut command = Command::new("unshare");
    command.args(["--net", "--map-root-user", "sh", "-c", &script, "sh"]).arg(program).env(VARIABLE, "1");
    command
}
