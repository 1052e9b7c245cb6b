//! The texts of violations: the parts of the pod that set a forbidden value, and the values.

use crate::pod::{Pod, name};
use pintle_machinery::{Value, ValueExt};
use std::fmt;

/// The singular of a noun or verb for one, the plural otherwise.
pub(crate) fn plural(count: usize, singular: &'static str, plural: &'static str) -> &'static str {
    if count == 1 { singular } else { plural }
}

/// A list of names in quotes, separated by commas.
pub(crate) fn quoted<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("\"{name}\"")).collect();
    names.join(", ")
}

/// `container "a"` or `containers "a", "b"`.
pub(crate) fn containers(names: &[&str]) -> String {
    format!("{} {}", plural(names.len(), "container", "containers"), quoted(names.iter().copied()))
}

/// The parts of a pod that set a forbidden value.
#[derive(Debug, Default)]
pub(crate) struct Setters<'a> {
    pub(crate) pod: bool,
    pub(crate) containers: Vec<&'a str>,
}

impl<'a> Setters<'a> {
    /// The security contexts that `is_bad` holds for.
    pub(crate) fn of(pod: &Pod<'a>, mut is_bad: impl FnMut(&'a Value) -> bool) -> Setters<'a> {
        let mut is_bad = |of: &'a Value| of.field("securityContext").is_some_and(&mut is_bad);
        let own = is_bad(pod.spec());
        Setters {
            pod: own,
            containers: pod.containers().filter(|container| is_bad(container)).map(name).collect(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.pod && self.containers.is_empty()
    }
}

impl fmt::Display for Setters<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.pod, self.containers.as_slice()) {
            (true, []) => f.write_str("pod"),
            (true, names) => write!(f, "pod and {}", containers(names)),
            (false, names) => f.write_str(&containers(names)),
        }
    }
}
