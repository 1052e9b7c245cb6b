//! The strategy of limit ranges.

use crate::core::pod_spec::resources::{validate_container_resource_name, validate_resource_name};
use crate::{field_checks, resource_list, rules};
use pintle_machinery::error_list::is_enough;
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Map, Quantity, Text, Value, ValueExt, meta::ObjectMeta,
    validation::is_qualified_name,
};
use pintle_registry::{RequestContext, Strategy};
use std::collections::BTreeSet;
use std::collections::HashSet;
use uuid::Uuid;

const STANDARD_TYPES: [&str; 3] = ["Pod", "Container", "PersistentVolumeClaim"];
const LISTS: [&str; 5] = ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"];
/// Larger amounts are compared as whole numbers and not in thousandths.
const MAX_MILLI_VALUE: i64 = i64::MAX / 1000;

pub(super) struct LimitRangeStrategy;

impl Strategy for LimitRangeStrategy {
    fn set_defaults(&self, object: &mut Value) {
        for limit in object.items_at_mut("spec.limits") {
            resource_list::round_up_at(limit, &LISTS);
            if limit.str_at("type") == "Container" {
                set_container_defaults(limit);
            }
        }
    }

    fn prepare_for_create(&self, _context: &RequestContext<'_>, object: &mut Value) {
        // As in the reference, a limit range needs no name.
        if object.name().is_empty() {
            object.set("metadata.name", Uuid::new_v4().to_string());
        }
    }

    fn validate(&self, _context: &RequestContext<'_>, object: &Value) -> ErrorList {
        validate(object)
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, _old: &Value) -> ErrorList {
        validate(object)
    }

    fn allow_create_on_update(&self) -> bool {
        true
    }
}

/// Defaults a limit to the maximum, and a request to the limit or the minimum.
fn set_container_defaults(limit: &mut Value) {
    for (list, source) in [("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")] {
        let source = limit.map_at(source).clone();
        if !source.is_empty() {
            let list = limit.object_at_mut(list);
            for (name, quantity) in source {
                list.entry(name).or_insert(quantity);
            }
        }
    }
}

fn validate(object: &Value) -> ErrorList {
    let mut errors = rules::metadata(object, true);
    let path = FieldPath::new("spec.limits");
    let mut types: HashSet<&str> = HashSet::new();
    for (index, limit) in object.items_at("spec.limits").iter().enumerate() {
        if is_enough(&errors) {
            break;
        }
        let path = path.index(index);
        let limit_type = limit.str_at("type");
        errors.extend(validate_type(limit_type, &path.child("type")));
        if !types.insert(limit_type) {
            errors.push(FieldError::duplicate(&path.child("type"), limit_type).of_named_type());
        }
        errors.extend(validate_limit(limit, &path));
    }
    errors
}

fn validate_type(limit_type: &str, path: &FieldPath) -> ErrorList {
    let errors = field_checks::invalid_each_of_named_type(path, limit_type, is_qualified_name(limit_type));
    if errors.is_empty() && !limit_type.contains('/') && !STANDARD_TYPES.contains(&limit_type) {
        let detail = "must be a standard limit type or fully qualified";
        return vec![FieldError::invalid(path, limit_type, detail).of_named_type()];
    }
    errors
}

fn validate_limit(limit: &Value, path: &FieldPath) -> ErrorList {
    let limit_type = limit.str_at("type");
    let names = |list: &str| -> ErrorList {
        let path = path.child(list);
        let check = |name: &Text| match limit_type {
            "Pod" | "Container" => validate_container_resource_name(name, &path.key(name)),
            _ => validate_resource_name(name, &path.key(name)),
        };
        limit.map_at(list).keys().flat_map(check).collect()
    };
    let mut errors = names("max");
    errors.extend(names("min"));
    for list in ["default", "defaultRequest"] {
        if limit_type != "Pod" {
            errors.extend(names(list));
        } else if !limit.map_at(list).is_empty() {
            let detail = "may not be specified when `type` is 'Pod'";
            errors.push(FieldError::forbidden(&path.child(list), detail));
        }
    }
    let has_storage = |list: &str| limit.map_at(list).contains_key("storage");
    if limit_type == "PersistentVolumeClaim" && !has_storage("min") && !has_storage("max") {
        let detail = "either minimum or maximum storage value is required, but neither was provided";
        errors.push(FieldError::required(&path.child("limits"), detail));
    }
    errors.extend(names("maxLimitRequestRatio"));
    let keys: BTreeSet<&Text> = LISTS.iter().flat_map(|list| limit.map_at(list).keys()).collect();
    for name in keys {
        errors.extend(Amounts::of(limit, name).validate(name, path));
    }
    errors
}

/// The amounts of a limit for one resource.
struct Amounts {
    min: Option<Quantity>,
    max: Option<Quantity>,
    default: Option<Quantity>,
    default_request: Option<Quantity>,
    max_ratio: Option<Quantity>,
}

impl Amounts {
    fn of(limit: &Value, name: &str) -> Amounts {
        let none = Map::new();
        let is_pod = limit.str_at("type") == "Pod";
        let amount = |list: &str| {
            let defaults = is_pod && list.starts_with("default");
            let list = if defaults { &none } else { limit.map_at(list) };
            list.get(name).map(resource_list::quantity)
        };
        Amounts {
            min: amount("min"),
            max: amount("max"),
            default: amount("default"),
            default_request: amount("defaultRequest"),
            max_ratio: amount("maxLimitRequestRatio"),
        }
    }

    fn validate(&self, name: &str, path: &FieldPath) -> ErrorList {
        let mut errors = ErrorList::new();
        let Amounts { min, max, default, default_request, max_ratio } = self;
        // The field that the error names, whose value it shows, and the two amounts in the wrong order.
        let orders = [
            ("min", min, (min, "min value"), (max, "max value")),
            (
                "defaultRequest",
                default_request,
                (min, "min value"),
                (default_request, "default request value"),
            ),
            (
                "defaultRequest",
                default_request,
                (default_request, "default request value"),
                (max, "max value"),
            ),
            (
                "defaultRequest",
                default_request,
                (default_request, "default request value"),
                (default, "default limit value"),
            ),
            ("default", min, (min, "min value"), (default, "default value")),
            ("default", max, (default, "default value"), (max, "max value")),
        ];
        let mut blame = |list: &str, shown: &Quantity, detail: String| {
            errors.push(FieldError::invalid(&path.child(list).key(name), shown.to_string(), detail));
        };
        for (list, shown, (low, low_name), (high, high_name)) in orders {
            if let (Some(shown), Some(low), Some(high)) = (shown, low, high)
                && low > high
            {
                blame(list, shown, format!("{low_name} {low} is greater than {high_name} {high}"));
            }
        }
        if let Some(ratio) = max_ratio {
            if *ratio < Quantity::parse("1").unwrap_or_default() {
                blame("maxLimitRequestRatio", ratio, format!("ratio {ratio} is less than 1"));
            }
            if let (Some(min), Some(max)) = (min, max)
                && let Some(limit) = exceeded_ratio(ratio, min, max)
            {
                let detail = format!("ratio {ratio} is greater than max/min = {limit:.6}");
                blame("maxLimitRequestRatio", ratio, detail);
            }
        }
        if let (Some(default), Some(request)) = (default, default_request)
            && !resource_list::is_overcommit_allowed(name)
            && default != request
        {
            let detail =
                format!("default value {default} must equal to defaultRequest value {request} in {name}");
            blame("defaultRequest", request, detail);
        }
        errors
    }
}

/// The maximum ratio within the bounds, when the given one exceeds it.
#[expect(clippy::cast_precision_loss, reason = "the ratio is compared as Kubernetes does")]
fn exceeded_ratio(ratio: &Quantity, min: &Quantity, max: &Quantity) -> Option<f64> {
    let is_small = [ratio, min, max].iter().all(|quantity| quantity.value() < MAX_MILLI_VALUE);
    let (ratio, min, max) = match is_small {
        true => (ratio.milli_value() as f64 / 1000.0, min.milli_value(), max.milli_value()),
        false => (ratio.value() as f64, min.value(), max.value()),
    };
    let limit = max as f64 / min as f64;
    (ratio > limit).then_some(limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    fn check(limits: Value, messages: &[&str]) {
        let object = json!({"metadata": {"name": "l", "namespace": "n"}, "spec": {"limits": limits}});
        let errors: Vec<String> = validate(&object).iter().map(ToString::to_string).collect();
        assert_eq!(errors, messages);
    }

    #[test]
    fn containers_get_defaults_from_the_bounds() {
        let mut limit = json!({
            "type": "Container", "max": {"cpu": "2", "memory": "1Gi"}, "min": {"cpu": "100m", "ephemeral-storage": "1Gi"},
            "default": {"cpu": "1500m"},
        });
        set_container_defaults(&mut limit);
        assert_eq!(limit["default"], json!({"cpu": "1500m", "memory": "1Gi"}));
        assert_eq!(
            limit["defaultRequest"],
            json!({"cpu": "1500m", "memory": "1Gi", "ephemeral-storage": "1Gi"})
        );
    }

    #[test]
    fn amounts_stand_in_their_order() {
        check(
            json!([{"type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "1"}, "default": {"cpu": "3"}, "defaultRequest": {"cpu": "4"}}]),
            &[
                "spec.limits[0].min[cpu]: Invalid value: \"2\": min value 2 is greater than max value 1",
                "spec.limits[0].defaultRequest[cpu]: Invalid value: \"4\": default request value 4 is greater than max value 1",
                "spec.limits[0].defaultRequest[cpu]: Invalid value: \"4\": default request value 4 is greater than default limit value 3",
                "spec.limits[0].default[cpu]: Invalid value: \"1\": default value 3 is greater than max value 1",
            ],
        );
        check(
            json!([{"type": "Container", "max": {"memory": "1Gi"}, "min": {"memory": "1Gi"}, "maxLimitRequestRatio": {"memory": "2"}}]),
            &[
                "spec.limits[0].maxLimitRequestRatio[memory]: Invalid value: \"2\": ratio 2 is greater than max/min = 1.000000",
            ],
        );
        // A ratio that has no thousandths in 64 bits is not less than one.
        check(json!([{"type": "Pod", "maxLimitRequestRatio": {"memory": "1Ei"}}]), &[]);
    }

    #[test]
    fn types_come_once_and_fit() {
        check(
            json!([{"type": "Pod"}, {"type": "Pod", "default": {"cpu": "1"}}, {"type": "Box"}]),
            &[
                "spec.limits[1].type: Duplicate value: \"Pod\"",
                "spec.limits[1].default: Forbidden: may not be specified when `type` is 'Pod'",
                "spec.limits[2].type: Invalid value: \"Box\": must be a standard limit type or fully qualified",
            ],
        );
        check(
            json!([{"type": "PersistentVolumeClaim"}]),
            &[
                "spec.limits[0].limits: Required value: either minimum or maximum storage value is required, but neither was provided",
            ],
        );
    }
}
