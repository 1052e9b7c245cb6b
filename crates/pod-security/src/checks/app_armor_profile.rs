//! The default `AppArmor` profile must not be disabled or replaced, except by profiles of the node.

use crate::{
    check::{Check, Revision, Violation},
    level::Level,
    pod::Pod,
    setters::{Setters, plural, quoted},
};
use pintle_go_forms::quote;
use pintle_machinery::ValueExt;
use std::collections::BTreeSet;

pub(super) const CHECK: Check =
    Check { id: "appArmorProfile", level: Level::Baseline, revisions: &[Revision::since(0, check)] };

/// The prefix of the annotations that selected profiles before the field existed.
const ANNOTATION: &str = "container.apparmor.security.beta.kubernetes.io/";

fn check(pod: &Pod<'_>) -> Option<Violation> {
    let mut types = BTreeSet::new();
    let setters = Setters::of(pod, |context| match context.field("appArmorProfile") {
        Some(profile) if !matches!(profile.str_at("type"), "RuntimeDefault" | "Localhost") => {
            types.insert(profile.str_at("type"));
            true
        }
        _ => false,
    });
    let is_bad = |(key, value): &(&str, &str)| {
        key.starts_with(ANNOTATION)
            && !matches!(*value, "" | "runtime/default")
            && !value.starts_with("localhost/")
    };
    let mut annotations: Vec<String> =
        pod.annotations().filter(is_bad).map(|(key, value)| format!("{key}={}", quote(value))).collect();
    annotations.sort_unstable();
    let of_annotations = plural(annotations.len(), "annotation", "annotations").to_owned();
    let setters = match (setters.is_empty(), annotations.is_empty()) {
        (true, true) => return None,
        (true, false) => of_annotations,
        (false, true) => setters.to_string(),
        (false, false) => format!("{setters} and {of_annotations}"),
    };
    let count = types.len() + annotations.len();
    let values = quoted(types.into_iter().chain(annotations.iter().map(String::as_str)));
    Some(Violation::new(
        plural(count, "forbidden AppArmor profile", "forbidden AppArmor profiles"),
        format!("{setters} must not set AppArmor profile type to {values}"),
    ))
}
