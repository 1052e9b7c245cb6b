//! The stability levels of the reference's metrics
//! (<https://kubernetes.io/docs/concepts/cluster-administration/system-metrics/#metric-lifecycle>).

use std::{collections::HashMap, sync::LazyLock};

/// A line for each metric: name, level, and the version that deprecates it, if any.
const TABLE: &str = include_str!("stability.table");

/// The stability level of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stability {
    Internal,
    Alpha,
    Beta,
    Stable,
}

impl Stability {
    /// The name in help texts.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Stability::Internal => "INTERNAL",
            Stability::Alpha => "ALPHA",
            Stability::Beta => "BETA",
            Stability::Stable => "STABLE",
        }
    }

    fn parse(text: &str) -> Option<Stability> {
        [Stability::Internal, Stability::Alpha, Stability::Beta, Stability::Stable]
            .into_iter()
            .find(|level| level.as_str() == text)
    }
}

/// The stability and deprecation of a metric of the reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lifecycle {
    pub(super) level: Stability,
    /// The version that deprecates the metric, or "".
    pub(super) deprecated: &'static str,
}

/// The lifecycle of a metric of the reference; `None` for other metrics, such as those of the process.
pub(super) fn lifecycle(name: &str) -> Option<Lifecycle> {
    static ALL: LazyLock<HashMap<&str, Lifecycle>> =
        LazyLock::new(|| TABLE.lines().filter_map(parse).collect());
    ALL.get(name).copied()
}

fn parse(line: &'static str) -> Option<(&'static str, Lifecycle)> {
    let mut words = line.split(' ');
    let (name, level) = (words.next()?, Stability::parse(words.next()?)?);
    Some((name, Lifecycle { level, deprecated: words.next().unwrap_or_default() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_readable() {
        let names: Vec<_> = TABLE.lines().map(|line| parse(line).expect(line).0).collect();
        assert!(names.is_sorted());
        let of = |name| lifecycle(name).map(|found| (found.level.as_str(), found.deprecated));
        assert_eq!(of("apiserver_request_total"), Some(("STABLE", "")));
        assert_eq!(of("apiserver_storage_objects"), Some(("STABLE", "1.34.0")));
        assert_eq!(of("process_open_fds"), None);
    }
}
