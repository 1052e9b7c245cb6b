//! Pods must not mount paths of their node.

use crate::{
    check::{Check, Revision, Violation},
    level::Level,
    pod::{Pod, name},
    setters::{plural, quoted},
};
use pintle_machinery::ValueExt;

pub(super) const ID: &str = "hostPathVolumes";

pub(super) const CHECK: Check =
    Check { id: ID, level: Level::Baseline, revisions: &[Revision::since(0, check)] };

fn check(pod: &Pod<'_>) -> Option<Violation> {
    let volumes = pod.spec().items_at("volumes").iter().filter(|volume| volume.field("hostPath").is_some());
    let bad: Vec<&str> = volumes.map(name).collect();
    let noun = plural(bad.len(), "volume", "volumes");
    (!bad.is_empty()).then(|| Violation::new("hostPath volumes", format!("{noun} {}", quoted(bad))))
}
