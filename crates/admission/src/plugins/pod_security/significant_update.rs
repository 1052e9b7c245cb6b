//! The updates of pods that are judged.

use pintle_machinery::{Value, ValueExt};
use std::collections::HashMap;

/// Whether an update of a pod changes images or the number of containers: nothing else that an update may change is judged.
pub(super) fn is_significant(pod: &Value, old: &Value) -> bool {
    let image = |container: &Value| container.str_at("image").to_owned();
    let changes = |path: &str| {
        let (own, old) = (pod.items_at(path), old.items_at(path));
        own.len() != old.len() || own.iter().zip(old).any(|(own, old)| image(own) != image(old))
    };
    let before: HashMap<&str, &str> = old
        .items_at("spec.ephemeralContainers")
        .iter()
        .map(|container| (container.str_at("name"), container.str_at("image")))
        .collect();
    let is_new = |container: &Value| before.get(container.str_at("name")) != Some(&container.str_at("image"));
    changes("spec.containers")
        || changes("spec.initContainers")
        || pod.items_at("spec.ephemeralContainers").iter().any(is_new)
}
