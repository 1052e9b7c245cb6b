//! The time limit of dials through proxies.

use super::metrics::Stage;
use crate::Cause;
use std::time::Duration;

/// How long a proxy may take: to accept a connection, and to connect to the destination.
pub(super) const DIAL_TIMEOUT: Duration = Duration::from_secs(30);

/// The error of a part of a dial that took too long.
pub(super) fn timed_out(stage: Stage) -> Cause {
    Cause::Other(match stage {
        Stage::Connect => "dial timeout, the proxy did not accept the connection".to_owned(),
        Stage::Proxy => "dial timeout, backstop".to_owned(),
    })
}
