//! The time limit of dials through proxies.

use std::time::Duration;

/// How long a proxy may take: to accept a connection, and to connect to the destination.
pub(super) const DIAL_TIMEOUT: Duration = Duration::from_secs(30);
