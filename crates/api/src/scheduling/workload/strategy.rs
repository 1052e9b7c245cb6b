//! The strategy of workloads, whose spec is immutable.

use crate::{
    declarative::{
        KeyedList, LONG_NAME, PATH_SEGMENT, SHORT_NAME, changed, is_unchanged, keyed_list, optional_text,
        required_text,
    },
    rules,
    scheduling::pod_group_fields::{drop_disabled, validate_gated, validate_policy},
};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt};
use pintle_registry::{RequestContext, Strategy};

const TEMPLATES: &str = "spec.podGroupTemplates";
const TEMPLATES_MAX: usize = 8;
const TEMPLATE_TYPE: &str = "k8s.io/api/scheduling/v1alpha2.PodGroupTemplate";

pub(super) struct WorkloadStrategy;

impl Strategy for WorkloadStrategy {
    fn prepare_for_create(&self, _context: &RequestContext<'_>, object: &mut Value) {
        object.items_at_mut(TEMPLATES).iter_mut().for_each(|template| drop_disabled(template, None));
    }

    fn validate(&self, _context: &RequestContext<'_>, object: &Value) -> ErrorList {
        let mut errors = rules::metadata(object, true);
        errors.extend(validate_spec(object, None));
        errors
    }

    fn prepare_for_update(&self, _context: &RequestContext<'_>, object: &mut Value, old: &Value) {
        let old = old.items_at(TEMPLATES);
        for (index, template) in object.items_at_mut(TEMPLATES).iter_mut().enumerate() {
            drop_disabled(template, old.get(index));
        }
    }

    fn validate_update(&self, _context: &RequestContext<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = rules::metadata_update(object, old);
        errors.extend(validate_spec(object, Some(old)));
        errors
    }
}

fn validate_spec(workload: &Value, old: Option<&Value>) -> ErrorList {
    let path = FieldPath::new("spec");
    let mut errors = ErrorList::new();
    if !is_unchanged(workload, old, "spec.controllerRef") {
        let path = path.child("controllerRef");
        match (old, workload.at("spec.controllerRef")) {
            (Some(_), _) => errors.push(changed(&path)),
            (None, Some(controller)) => errors.extend(validate_controller(controller, &path)),
            (None, None) => {}
        }
    }
    if is_unchanged(workload, old, TEMPLATES) {
        return errors;
    }
    let (items, path) = (workload.items_at(TEMPLATES), path.child("podGroupTemplates"));
    if old.is_some() {
        errors.push(changed(&path));
    }
    match items.len() {
        0 => errors.push(FieldError::required(&path, "")),
        count if count > TEMPLATES_MAX => errors.push(FieldError::too_many(&path, count, TEMPLATES_MAX)),
        _ if old.is_some() => {}
        _ => {
            let list =
                KeyedList { items, old: &[], max: TEMPLATES_MAX, key: "name", type_name: TEMPLATE_TYPE };
            errors.extend(keyed_list(&list, &path, |template, _, path| validate_template(template, path)));
        }
    }
    errors
}

fn validate_controller(controller: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = optional_text(controller, "apiGroup", path, LONG_NAME);
    errors.extend(required_text(controller, "kind", path, PATH_SEGMENT));
    errors.extend(required_text(controller, "name", path, PATH_SEGMENT));
    errors
}

fn validate_template(template: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = required_text(template, "name", path, SHORT_NAME);
    let policy = rules::value_at(template, "schedulingPolicy");
    errors.extend(validate_policy(policy, None, &path.child("schedulingPolicy")));
    errors.extend(validate_gated(template, None, path));
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    fn check(spec: Value, old: Option<Value>, expected: &[&str]) {
        let object = |spec: Value| json!({"spec": spec});
        let errors = validate_spec(&object(spec), old.map(object).as_ref());
        assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn workloads_are_checked() {
        let template = |name: &str| json!({"name": name, "schedulingPolicy": {"basic": {}}});
        check(json!({"podGroupTemplates": [template("a")]}), None, &[]);
        check(json!({}), None, &["spec.podGroupTemplates: Required value"]);
        check(
            json!({"podGroupTemplates": [{}]}),
            None,
            &[
                "spec.podGroupTemplates[0].name: Required value",
                "spec.podGroupTemplates[0].schedulingPolicy: Invalid value: \"\": must specify one of: `basic`, `gang`",
            ],
        );
        check(
            json!({"podGroupTemplates": [template("a")], "controllerRef": {"kind": "a/b"}}),
            None,
            &[
                "spec.controllerRef.kind: Invalid value: \"a/b\": may not contain '/'",
                "spec.controllerRef.name: Required value",
            ],
        );
        let many: Vec<Value> = (0..9).map(|index| template(&format!("t{index}"))).collect();
        check(
            json!({"podGroupTemplates": many}),
            None,
            &["spec.podGroupTemplates: Too many: 9: must have at most 8 items"],
        );
    }

    #[test]
    fn the_spec_is_immutable() {
        let old = json!({"podGroupTemplates": [{"name": "a", "schedulingPolicy": {"basic": {}}}]});
        check(old.clone(), Some(old.clone()), &[]);
        check(
            json!({}),
            Some(old.clone()),
            &[
                "spec.podGroupTemplates: Invalid value: null: field is immutable",
                "spec.podGroupTemplates: Required value",
            ],
        );
        let mut controlled = old.clone();
        controlled["controllerRef"] = json!({"kind": "Job", "name": "j"});
        check(controlled, Some(old), &["spec.controllerRef: Invalid value: null: field is immutable"]);
    }
}
