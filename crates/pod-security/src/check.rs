//! Defines [`Check`], a rule of the standards.

use crate::{level::Level, pod::Pod};
use std::borrow::Cow;

/// A rule of the standards, with its revisions.
pub(crate) struct Check {
    /// The name by which other checks override this one.
    pub(crate) id: &'static str,
    /// The lowest level that includes the check. [`Level::Restricted`] includes those of [`Level::Baseline`].
    pub(crate) level: Level,
    /// The revisions, the oldest first.
    pub(crate) revisions: &'static [Revision],
}

/// A revision of a check.
pub(crate) struct Revision {
    /// The first minor version that it applies to; it applies until the next revision.
    pub(crate) since: u64,
    /// Checks a pod.
    pub(crate) check: fn(&Pod<'_>) -> Option<Violation>,
    /// The checks of [`Level::Baseline`] that this one includes, at its own level.
    pub(crate) overrides: &'static [&'static str],
}

impl Revision {
    pub(crate) const fn since(since: u64, check: fn(&Pod<'_>) -> Option<Violation>) -> Revision {
        Revision { since, check, overrides: &[] }
    }

    pub(crate) const fn overriding(self, overrides: &'static [&'static str]) -> Revision {
        Revision { overrides, ..self }
    }
}

impl Check {
    /// The revision of a minor version; `None` before the first.
    pub(crate) fn revision(&self, minor: u64) -> Option<&'static Revision> {
        self.revisions.iter().rev().find(|revision| revision.since <= minor)
    }
}

/// A pod's violation of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The violated rule, such as `host namespaces`.
    pub reason: Cow<'static, str>,
    /// The offending values, such as `hostNetwork=true`.
    pub detail: String,
}

impl Violation {
    pub(crate) fn new(reason: impl Into<Cow<'static, str>>, detail: impl Into<String>) -> Violation {
        Violation { reason: reason.into(), detail: detail.into() }
    }
}
