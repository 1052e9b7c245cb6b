//! The name of this host.

use rustix::system::uname;

/// The host name; "localhost" when none is set. The kernel is asked, not `/proc/sys`: services may not see that.
pub(crate) fn hostname() -> String {
    match uname().nodename().to_string_lossy().trim() {
        "" | "(none)" => "localhost".to_owned(),
        name => name.to_owned(),
    }
}
