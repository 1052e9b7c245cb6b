//! The flags of priority and fairness: reads and validates them. Names, defaults and messages are kube-apiserver's
//! (<https://kubernetes.io/docs/reference/command-line-tools-reference/kube-apiserver/>).

use super::arguments::switch;
use clap::{Arg, ArgMatches};
use pintle_apiserver::resource_config::RuntimeConfig;

/// The options of priority and fairness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PriorityAndFairnessOptions {
    /// Whether it is enabled; otherwise reads and writes have separate limits of requests in flight.
    pub enabled: bool,
}

impl Default for PriorityAndFairnessOptions {
    fn default() -> PriorityAndFairnessOptions {
        PriorityAndFairnessOptions { enabled: true }
    }
}

const FLAG: &str = "enable-priority-and-fairness";
/// The keys of `--runtime-config` that may disable the objects of flow control, in the order in which they are checked.
const CONFLICTS: [&str; 3] = ["flowcontrol.apiserver.k8s.io/v1", "api/ga", "api/all"];

impl PriorityAndFairnessOptions {
    /// The flags.
    pub fn args() -> [Arg; 1] {
        [switch(FLAG, "Enables API priority and fairness")]
    }

    /// Reads the flags.
    pub fn read(matches: &ArgMatches) -> PriorityAndFairnessOptions {
        let default = PriorityAndFairnessOptions::default();
        PriorityAndFairnessOptions { enabled: matches.get_one(FLAG).copied().unwrap_or(default.enabled) }
    }

    /// The error of a runtime configuration that disables the objects of flow control.
    pub(crate) fn error(&self, runtime_config: &RuntimeConfig) -> Option<String> {
        let mut decisive = CONFLICTS.iter().filter_map(|key| match runtime_config.value(key) {
            Some(value @ ("true" | "false")) => Some((key, value)),
            _ => None,
        });
        let (key, _) = decisive.next().filter(|(_, value)| self.enabled && *value == "false")?;
        Some(format!("--runtime-config={key}=false conflicts with --enable-priority-and-fairness=true"))
    }

    /// The total number of seats, from the limits of reads and writes in flight; `None` when priority and fairness is
    /// disabled.
    ///
    /// # Errors
    /// When both are zero.
    pub(crate) fn server_concurrency_limit(
        &self,
        (reads, writes): (usize, usize),
    ) -> Result<Option<u64>, String> {
        if !self.enabled {
            return Ok(None);
        }
        match reads.saturating_add(writes) {
            0 => Err(format!(
                "invalid configuration: MaxRequestsInFlight={reads} and MaxMutatingRequestsInFlight={writes}; they must \
                 add up to something positive"
            )),
            limit => Ok(Some(limit as u64)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_contradict_each_other_are_refused() {
        let check = |runtime_config: &str, limits: (usize, usize), expected: Result<Option<u64>, &str>| {
            let mut config = RuntimeConfig::default();
            config.add(runtime_config);
            let on = PriorityAndFairnessOptions::default();
            let limit = on.error(&config).map_or_else(|| on.server_concurrency_limit(limits), Err);
            assert_eq!(limit, expected.map_err(str::to_owned), "{runtime_config}");
            let off = PriorityAndFairnessOptions { enabled: false };
            assert_eq!((off.error(&config), off.server_concurrency_limit(limits)), (None, Ok(None)));
        };
        check("", (400, 200), Ok(Some(600)));
        check("", (400, 0), Ok(Some(400)));
        check(
            "",
            (0, 0),
            Err(
                "invalid configuration: MaxRequestsInFlight=0 and MaxMutatingRequestsInFlight=0; they must add up to \
                 something positive",
            ),
        );
        check(
            "api/ga=false",
            (1, 1),
            Err("--runtime-config=api/ga=false conflicts with --enable-priority-and-fairness=true"),
        );
        check("api/ga=false,flowcontrol.apiserver.k8s.io/v1=true", (1, 1), Ok(Some(2)));
        check(
            "api/all=true,flowcontrol.apiserver.k8s.io/v1=false",
            (1, 1),
            Err("--runtime-config=flowcontrol.apiserver.k8s.io/v1=false conflicts with \
                 --enable-priority-and-fairness=true"),
        );
    }
}
