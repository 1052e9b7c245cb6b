//! The strategy of device taint rules.

use super::validation;
use crate::rules;
use jiff::Timestamp;
use pintle_machinery::{ErrorList, Value, ValueExt, meta};
use pintle_registry::{RequestContext, Strategy};

const EFFECT: &str = "spec.taint.effect";
const TIME: &str = "spec.taint.timeAdded";

pub(super) struct DeviceTaintRuleStrategy;

impl Strategy for DeviceTaintRuleStrategy {
    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }

    /// The time is a default like others: it belongs to the manager who sends a rule without one.
    fn set_defaults(&self, object: &mut Value) {
        object.set_default(TIME, meta::format_time(Timestamp::now()));
    }

    fn prepare_for_create(&self, _context: &RequestContext<'_>, object: &mut Value) {
        object.remove_at("status");
        object.set("metadata.generation", 1);
    }

    fn validate(&self, _context: &RequestContext<'_>, object: &Value) -> ErrorList {
        validation::validate(object)
    }

    /// The time is that since when the taint has its effect.
    fn prepare_for_update(&self, context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        rules::keep(object, old, "status");
        let is_other_effect = object.str_at(EFFECT) != old.str_at(EFFECT);
        if is_other_effect && object.at(TIME) == old.at(TIME) {
            object.set(TIME, meta::format_time(context.now));
        }
        // A selector without members selects other devices than none.
        let [has_selector, had_selector] =
            [&*object, old].map(|rule| rule.at("spec.deviceSelector").is_some());
        let changed = has_selector != had_selector || rules::differs(object, old, "spec");
        rules::count_generation_if(object, old, changed);
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        validation::validate_update(object, old)
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;
    use pintle_registry::testing::{MemoryRegistry, with_context};

    #[test]
    fn a_selector_without_members_is_another_than_none() {
        let check = |old: Value, new: Value, generation: i64| {
            let old = json!({"metadata": {"generation": 1}, "spec": old});
            let mut object = json!({"spec": new});
            with_context(&MemoryRegistry::default(), "", false, |context| {
                DeviceTaintRuleStrategy.prepare_for_update(context, &mut object, &old);
            });
            assert_eq!(object["metadata"]["generation"], json!(generation), "{object}");
        };
        let taint = json!({"timeAdded": "1970-01-01T00:00:00Z"});
        check(json!({"taint": taint}), json!({"taint": taint}), 1);
        check(json!({"taint": taint}), json!({"taint": taint, "deviceSelector": {}}), 2);
        check(
            json!({"taint": taint, "deviceSelector": {}}),
            json!({"taint": taint, "deviceSelector": {}}),
            1,
        );
    }

    #[test]
    fn the_time_follows_the_effect() {
        let earlier = "1969-01-01T00:00:00Z";
        let now = "1970-01-01T00:00:00Z";
        let rule = |effect: &str, time: Value| json!({"metadata": {"generation": 1}, "spec": {"taint": {"effect": effect, "timeAdded": time}}});
        let check = |new: Value, time: &str| {
            let old = rule("NoExecute", json!(earlier));
            let mut object = new;
            with_context(&MemoryRegistry::default(), "", false, |context| {
                DeviceTaintRuleStrategy.prepare_for_update(context, &mut object, &old);
            });
            assert_eq!(object.str_at(TIME), time);
        };
        check(rule("NoExecute", json!(earlier)), earlier);
        check(rule("NoSchedule", json!(earlier)), now);
        check(rule("NoSchedule", json!("1968-01-01T00:00:00Z")), "1968-01-01T00:00:00Z");
    }

    #[test]
    fn the_time_is_a_default() {
        let mut new = json!({"spec": {"taint": {"key": "k"}}});
        DeviceTaintRuleStrategy.set_defaults(&mut new);
        assert!(!new.str_at(TIME).is_empty(), "{new}");
        let mut stored = json!({"spec": {"taint": {"timeAdded": "1970-01-01T00:00:00Z"}}});
        let before = stored.clone();
        DeviceTaintRuleStrategy.set_defaults(&mut stored);
        assert_eq!(stored, before);
    }
}
