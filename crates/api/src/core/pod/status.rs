//! `pods/status`: the strategy for status writes of the kubelet and the scheduler.

use super::status_validation;
use super::strategy::{PodStrategy, drop_disabled_fields};
use crate::rules;
use pintle_machinery::{ErrorList, FieldPath, Value, ValueExt, validation};
use pintle_registry::{RequestContext, Strategy};
use std::collections::HashMap;

/// The strategy of the `status` subresource.
#[derive(Debug, Clone, Copy)]
pub(super) struct StatusStrategy;

impl Strategy for StatusStrategy {
    fn reset_fields(&self) -> &'static [&'static str] {
        &["spec", "metadata.deletionTimestamp", "metadata.ownerReferences"]
    }

    fn set_defaults(&self, object: &mut Value) {
        PodStrategy.set_defaults(object);
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        rules::keep(object, old, "spec");
        object.remove_at("metadata.deletionTimestamp");
        // Owner references cannot change through this subresource, because old kubelets send incorrect ones.
        match old.at("metadata.ownerReferences") {
            Some(references) => object.set("metadata.ownerReferences", references.clone()),
            None => drop(object.remove_at("metadata.ownerReferences")),
        }
        let class = old.str_at("status.qosClass");
        if object.str_at("status.qosClass").is_empty() && !class.is_empty() {
            object.set("status.qosClass", class);
        }
        preserve_observed_generation(object, old);
        drop_disabled_fields(object, Some(old));
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        status_validation::validate_status_update(object, old)
    }

    fn warnings_on_update(&self, _context: &RequestContext<'_>, object: &Value, _old: &Value) -> Vec<String> {
        let status = FieldPath::new("status");
        ["podIPs", "hostIPs"]
            .iter()
            .flat_map(|list| {
                let path = status.child(list);
                let addresses = object.items_at(&format!("status.{list}")).iter().enumerate();
                addresses.flat_map(move |(index, address)| {
                    validation::warnings_for_ip(&path.index(index).child("ip"), address.str_at("ip"))
                })
            })
            .collect()
    }

    fn graceful_deletion(
        &self,
        context: &RequestContext<'_>,
        object: &Value,
        requested: Option<i64>,
    ) -> Option<i64> {
        PodStrategy.graceful_deletion(context, object, requested)
    }
}

/// Restores `observedGeneration` of the status and its conditions where a client omits it, as older ones do. Conditions
/// of the same type are matched in order.
fn preserve_observed_generation(object: &mut Value, old: &Value) {
    let observed = |value: &Value| value.i64_at("observedGeneration").unwrap_or_default();
    let old_status = old.at("status").map_or(0, observed);
    if object.at("status").map_or(0, observed) == 0 && old_status != 0 {
        object.set("status.observedGeneration", old_status);
    }
    let mut by_type: HashMap<&str, Vec<i64>> = HashMap::new();
    for condition in old.items_at("status.conditions").iter().rev() {
        by_type.entry(condition.str_at("type")).or_default().push(observed(condition));
    }
    for condition in object.items_at_mut("status.conditions") {
        let old = by_type.get_mut(condition.str_at("type")).and_then(Vec::pop).unwrap_or_default();
        if old != 0 && observed(condition) == 0 {
            condition.set("observedGeneration", old);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::preserve_observed_generation;
    use pintle_machinery::json;

    #[test]
    fn observed_generations_survive_writers_that_do_not_know_them() {
        let old = json!({"status": {"observedGeneration": 3, "conditions": [
            {"type": "A", "observedGeneration": 1}, {"type": "A", "observedGeneration": 2}, {"type": "B"},
        ]}});
        let mut new = json!({"status": {"conditions": [
            {"type": "B"}, {"type": "A"}, {"type": "A", "observedGeneration": 9}, {"type": "A"},
        ]}});
        preserve_observed_generation(&mut new, &old);
        let wanted = json!({"status": {"observedGeneration": 3, "conditions": [
            {"type": "B"}, {"type": "A", "observedGeneration": 1}, {"type": "A", "observedGeneration": 9}, {"type": "A"},
        ]}});
        assert_eq!(new, wanted);
    }
}
