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
                "Time after which the lease of the server that elects leaders expires unless it is renewed",
            ),
            time(
                "coordinated-leadership-renew-deadline",
                "Time for which the server that elects leaders retries to renew its lease before it gives up",
            ),
            time(
                "coordinated-leadership-retry-period",
                "Interval of lease renewals and of the steps of elections",
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

    /// The errors of the options: each time has to be longer than the next one.
    pub(crate) fn errors(&self) -> Vec<String> {
        let LeadershipTimers { lease_duration, renew_deadline, retry_period } = self.timers;
        let errors = [
            (lease_duration, "lease-duration", renew_deadline, "renew-deadline"),
            (renew_deadline, "renew-deadline", retry_period, "retry-period"),
        ];
        let errors = errors.into_iter().filter(|(longer, _, shorter, _)| longer <= shorter);
        errors
            .map(|(_, longer, _, shorter)| {
                format!(
                    "--coordinated-leadership-{longer} must be greater than --coordinated-leadership-{shorter}"
                )
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn times_are_nested() {
        let check = |lease_duration: u64, renew_deadline: u64, retry_period: u64| {
            let [lease_duration, renew_deadline, retry_period] =
                [lease_duration, renew_deadline, retry_period].map(Duration::from_secs);
            LeadershipOptions { timers: LeadershipTimers { lease_duration, renew_deadline, retry_period } }
                .errors()
        };
        let lease = "--coordinated-leadership-lease-duration must be greater than --coordinated-leadership-renew-deadline";
        let renew = "--coordinated-leadership-renew-deadline must be greater than --coordinated-leadership-retry-period";
        assert!(LeadershipOptions::default().errors().is_empty());
        assert_eq!(check(10, 10, 2), [lease]);
        assert_eq!(check(15, 10, 10), [renew]);
        assert_eq!(check(0, 0, 0), [lease, renew]);
    }
}
