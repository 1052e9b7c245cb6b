//! Evaluates pods against levels.

use crate::{
    check::{Revision, Violation},
    checks::CHECKS,
    level::Level,
    pod::Pod,
    policy::LevelVersion,
    version::Version,
};
use std::fmt;

/// Returns the violations of a level by a pod. Takes time linear in the size of the pod.
pub fn evaluate(policy: LevelVersion, pod: &Pod<'_>) -> Violations {
    Violations(revisions(policy).filter_map(|revision| (revision.check)(pod)).collect())
}

/// The revisions that a level consists of: those of baseline, then those of restricted, each by the names of the checks.
fn revisions(policy: LevelVersion) -> impl Iterator<Item = &'static Revision> {
    let minor = match policy.version {
        Version::Minor(minor) => minor,
        Version::Latest => u64::MAX,
    };
    let included =
        CHECKS.iter().filter(move |check| check.level <= policy.level && policy.level > Level::Privileged);
    let is_overridden = move |id: &str| {
        let restricted = CHECKS.iter().filter(|check| check.level == Level::Restricted);
        let mut overrides =
            restricted.filter_map(|check| check.revision(minor)).flat_map(|own| own.overrides);
        policy.level == Level::Restricted && overrides.any(|overridden| *overridden == id)
    };
    included.filter(move |check| !is_overridden(check.id)).filter_map(move |check| check.revision(minor))
}

/// The violations of a level by one pod, in the order of its checks. Displayed with their details.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violations(Vec<Violation>);

impl Violations {
    /// Whether the pod violates nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The violated rules without details, for the violations of several pods.
    pub fn reasons(&self) -> String {
        self.0.iter().map(|violation| &*violation.reason).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, violation) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{}", violation.reason)?;
            if !violation.detail.is_empty() {
                write!(f, " ({})", violation.detail)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
