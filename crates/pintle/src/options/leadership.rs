//! The flags of coordinated leader election
//! (<https://kubernetes.io/docs/reference/command-line-tools-reference/kube-apiserver/>).

use super::arguments::{duration, flag, set};
use clap::{Arg, ArgMatches};
use pintle_controlplane::LeadershipTimers;

/// The options of coordinated leader election, which is behind the feature gate `CoordinatedLeaderElection`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeadershipOptions {
    /// The times of the election of the server that elects.
    pub timers: LeadershipTimers,
}

impl LeadershipOptions {
    /// The flags.
    pub fn args() -> Vec<Arg> {
        let time = |name, help| flag(name, "DURATION", help).value_parser(duration);
        vec![
            time(
                "coordinated-leadership-lease-duration",
                "how long the server that elects leaders is not replaced when it does not renew its lease",
            ),
            time(
                "coordinated-leadership-renew-deadline",
                "how long the server that elects leaders goes on when it cannot renew its lease",
            ),
            time(
                "coordinated-leadership-retry-period",
                "the interval between renewals of the lease, and between steps of elections",
            ),
        ]
    }

    /// Reads the flags.
    pub fn read(matches: &ArgMatches) -> LeadershipOptions {
        let mut timers = LeadershipTimers::default();
        set(matches, "coordinated-leadership-lease-duration", &mut timers.lease_duration);
        set(matches, "coordinated-leadership-renew-deadline", &mut timers.renew_deadline);
        set(matches, "coordinated-leadership-retry-period", &mut timers.retry_period);
        LeadershipOptions { timers }
    }
}
