//! Limits of what single objects of a namespace may ask for.

use super::GROUP;
use crate::declare::Declare;
use crate::plain::PlainStrategy;
use pintle_machinery::{Value, ValueExt};
use pintle_registry::Resource;

/// The declaration.
pub fn resource() -> Resource {
    GROUP
        .namespaced("LimitRange", "limitranges")
        .short_names(["limits"])
        .ruled(PlainStrategy::NEW.defaults(set_defaults).creates_on_update())
}

/// Containers get their default limits from the maxima, and their default requests from limits or minima.
fn set_defaults(range: &mut Value) {
    for item in range.items_at_mut("spec.limits") {
        if item.str_at("type") == "Container" {
            fill(item, "max", "default");
            fill(item, "default", "defaultRequest");
            fill(item, "min", "defaultRequest");
        }
    }
}

/// Copies the resources of one member that another lacks.
fn fill(item: &mut Value, from: &str, to: &str) {
    let source = item.map_at(from).clone();
    if source.is_empty() {
        return;
    }
    let target = item.object_at_mut(to);
    for (resource, quantity) in source {
        target.entry(resource).or_insert(quantity);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn limits_of_containers_follow_from_each_other() {
        let mut range = json!({"spec": {"limits": [
            {"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "1", "memory": "1Gi"}},
            {"type": "Pod", "max": {"cpu": "4"}},
        ]}});
        set_defaults(&mut range);
        let container = json!({
            "type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "1", "memory": "1Gi"},
            "default": {"cpu": "2"}, "defaultRequest": {"cpu": "2", "memory": "1Gi"},
        });
        assert_eq!(range, json!({"spec": {"limits": [container, {"type": "Pod", "max": {"cpu": "4"}}]}}));
    }
}
