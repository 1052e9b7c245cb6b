//! The strategies of pod groups.

use super::validation;
use crate::{
    plain::keep_but_status,
    rules,
    scheduling::pod_group_fields::{drop_disabled, has},
};
use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::{ErrorList, Map, Value, ValueExt};
use pintle_registry::{RequestContext, Strategy};

const STATUS_OF_CLAIMS: &str = "status.resourceClaimStatuses";

pub(super) struct PodGroupStrategy;

impl Strategy for PodGroupStrategy {
    fn prepare_for_create(&self, _context: &RequestContext<'_>, object: &mut Value) {
        object.remove_at("status");
        drop_disabled_fields(object, None);
    }

    fn validate(&self, _context: &RequestContext<'_>, object: &Value) -> ErrorList {
        validation::validate(object)
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        rules::keep(object, old, "status");
        drop_disabled_fields(object, Some(old));
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        validation::validate_update(object, old)
    }
}

/// The strategy of the `status` subresource.
pub(super) struct PodGroupStatusStrategy;

impl Strategy for PodGroupStatusStrategy {
    fn reset_fields(&self) -> &'static [&'static str] {
        &["metadata", "spec"]
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        keep_but_status(object, old);
        rules::keep_metadata(object, old);
        let has_claims = has(rules::value_at(old, "spec"), "resourceClaims");
        if !enabled(Gate::DRAWorkloadResourceClaims) && !has_claims {
            object.remove_at(STATUS_OF_CLAIMS);
        }
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        validation::validate_status_update(object, old)
    }
}

fn drop_disabled_fields(group: &mut Value, old: Option<&Value>) {
    let old = old.map(|old| rules::value_at(old, "spec"));
    let mut spec = Value::Object(Map::clone(group.map_at("spec")));
    drop_disabled(&mut spec, old);
    group.set("spec", spec);
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn fields_behind_closed_gates_are_dropped() {
        let mut group = json!({"spec": {"disruptionMode": "Pod", "schedulingPolicy": {"basic": {}}}});
        let old = group.clone();
        drop_disabled_fields(&mut group, Some(&old));
        assert_eq!(group, old);
        drop_disabled_fields(&mut group, None);
        assert_eq!(group, json!({"spec": {"schedulingPolicy": {"basic": {}}}}));
    }
}
