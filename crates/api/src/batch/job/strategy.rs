//! The rules of jobs. A job selects its pods by labels generated from its uid, unless its spec sets a manual
//! selector.

use super::{spec, status::StatusUpdate, status::is_true};
use crate::rules;
use crate::workload::{self, Workload};
use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt,
    meta::ObjectMeta,
    selectors::LabelSelector,
    validation::{
        LabelSelectorOptions, is_dns1123_label, label_selector_has_invalid_label_value,
        validate_immutable_field, validate_label_selector,
    },
};
use pintle_registry::{DeleteOptions, RequestContext};

const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";
const JOB_NAME: &str = "batch.kubernetes.io/job-name";
/// The form of the label before it had a prefix.
const LEGACY_CONTROLLER_UID: &str = "controller-uid";
const LEGACY_JOB_NAME: &str = "job-name";
const TEMPLATE_LABELS: &str = "spec.template.metadata.labels";

/// The rules of jobs.
pub(super) struct Job;

impl Workload for Job {
    const ORPHANS_DEPENDENTS: bool = true;

    fn set_defaults(&self, object: &mut Value) {
        workload::set_template_defaults(object);
        if object.at("spec.completions").is_none() && object.at("spec.parallelism").is_none() {
            object.set("spec.completions", 1);
        }
        object.set_default("spec.parallelism", 1);
        let backoff_limit = if object.at("spec.backoffLimitPerIndex").is_some() { i32::MAX } else { 6 };
        object.set_default("spec.backoffLimit", backoff_limit);
        let labels = object.map_at(TEMPLATE_LABELS).clone();
        if !labels.is_empty() && object.map_at("metadata.labels").is_empty() {
            object.set("metadata.labels", labels);
        }
        object.set_default("spec.completionMode", "NonIndexed");
        object.set_default("spec.suspend", false);
        let replacement =
            if object.at("spec.podFailurePolicy").is_some() { "Failed" } else { "TerminatingOrFailed" };
        object.set_default("spec.podReplacementPolicy", replacement);
        object.set_default("spec.manualSelector", false);
        if let Some(spec) = object.at_mut("spec") {
            spec::set_failure_policy_defaults(spec);
        }
    }

    fn prepare_for_create(&self, context: &RequestContext<'_>, object: &mut Value) {
        if !object.bool_at("spec.manualSelector") {
            generate_selector(object, context.empty_fields.lacks_labels());
        }
    }

    fn validate_spec(&self, object: &Value, old: Option<&Value>) -> ErrorList {
        validate(object, old)
    }

    fn validate_update(&self, object: &Value, old: &Value) -> ErrorList {
        let mut errors = rules::metadata(object, true);
        errors.extend(validate(object, Some(old)));
        errors.extend(rules::metadata_update(object, old));
        errors.extend(validate_spec(object, Some(old)));
        errors.extend(validate_kept(object, old));
        errors
    }

    fn validate_status(&self, object: &Value, old: &Value) -> ErrorList {
        StatusUpdate { object, old }.validate()
    }

    fn template_warnings(&self, object: &Value, old: Option<&Value>) -> Vec<String> {
        let old = old.and_then(|old| old.at("spec"));
        spec::warnings(rules::value_at(object, "spec"), old, &FieldPath::new("spec"))
    }

    fn warnings_on_delete(&self, options: &DeleteOptions) -> Vec<String> {
        if options.propagation_policy.is_some() || options.orphan_dependents.is_some() {
            return Vec::new();
        }
        vec![
            "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove \
             them or set propagationPolicy=Orphan to suppress this warning"
                .to_owned(),
        ]
    }

    /// A job without labels gets those of its template, including the generated ones.
    fn canonicalize(&self, object: &mut Value) {
        self.set_defaults(object);
    }
}

/// Generates the labels of the template and the selector. Labels that the job copied from its template, since it
/// `lacks_labels`, follow those.
fn generate_selector(object: &mut Value, lacks_labels: bool) {
    let (name, uid) = (object.name().to_owned(), object.uid().to_owned());
    let own = object.map_at("metadata.labels");
    let follow = lacks_labels && !own.is_empty() && own == object.map_at(TEMPLATE_LABELS);
    let labels = object.object_at_mut(TEMPLATE_LABELS);
    for (label, value) in
        [(LEGACY_JOB_NAME, &name), (JOB_NAME, &name), (LEGACY_CONTROLLER_UID, &uid), (CONTROLLER_UID, &uid)]
    {
        labels.entry(label).or_insert_with(|| value.clone().into());
    }
    let labels = labels.clone();
    if follow {
        object.set("metadata.labels", labels);
    }
    object.object_at_mut("spec.selector.matchLabels").entry(CONTROLLER_UID).or_insert_with(|| uid.into());
}

fn validate(object: &Value, old: Option<&Value>) -> ErrorList {
    let mut errors = validate_generated_selector(object, old);
    errors.extend(validate_spec(object, old));
    let completions = object.i64_at("spec.completions").unwrap_or_default();
    if spec::is_indexed(rules::value_at(object, "spec")) && completions > 0 {
        let last = format!("{}-{}", object.name(), completions - 1);
        if !is_dns1123_label(&last).is_empty() {
            let detail = format!("will not able to create pod with invalid DNS label: {last}");
            errors.push(FieldError::invalid(&FieldPath::new("metadata.name"), object.name(), detail));
        }
    }
    errors
}

fn validate_generated_selector(object: &Value, old: Option<&Value>) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(selector) = object.at("spec.selector").filter(|_| !object.bool_at("spec.manualSelector")) else {
        return errors;
    };
    if object.uid().is_empty() {
        errors.push(FieldError::required(&FieldPath::new("metadata.uid"), ""));
    }
    let mut expected = vec![(LEGACY_CONTROLLER_UID, object.uid()), (LEGACY_JOB_NAME, object.name())];
    // Jobs from before the prefix keep the old label.
    let had = |label: &str| old.is_none_or(|old| old.map_at(TEMPLATE_LABELS).contains_key(label));
    if had(JOB_NAME) && had(CONTROLLER_UID) {
        expected.extend([(CONTROLLER_UID, object.uid()), (JOB_NAME, object.name())]);
    }
    let labels = object.map_at(TEMPLATE_LABELS);
    let path = FieldPath::new(TEMPLATE_LABELS);
    for (label, value) in &expected {
        match labels.get(label).and_then(Value::as_str) {
            None => errors.push(FieldError::required(&path.key(label), format!("must be '{value}'"))),
            Some(found) if found != *value => {
                let detail = format!("must be '{value}'");
                errors.push(FieldError::invalid(&path.key(label), Value::Object(labels.clone()), detail));
            }
            Some(_) => {}
        }
    }
    if let Ok(parsed) = LabelSelector::from_object(Some(selector))
        && !parsed.matches(|key| expected.iter().find(|(label, _)| *label == key).map(|(_, value)| *value))
    {
        let detail = "`selector` not auto-generated";
        let error = FieldError::invalid(&FieldPath::new("spec.selector"), selector.clone(), detail);
        errors.push(pintle_internal_form::show(error, workload::SELECTOR));
    }
    errors
}

fn validate_spec(object: &Value, old: Option<&Value>) -> ErrorList {
    let options = workload::template_options(old);
    let mut errors = spec::validate(rules::value_at(object, "spec"), &FieldPath::new("spec"), &options);
    let path = FieldPath::new("spec.selector");
    match object.at(path.as_str()) {
        None => errors.push(FieldError::required(&path, "")),
        Some(selector) => {
            let options = LabelSelectorOptions {
                allow_invalid_label_value: old
                    .and_then(|old| old.at("spec.selector"))
                    .is_some_and(label_selector_has_invalid_label_value),
                ..LabelSelectorOptions::default()
            };
            errors.extend(validate_label_selector(selector, options, &path));
        }
    }
    if let Ok(selector) = workload::selector(object, "") {
        errors.extend(workload::validate_template_is_selected(object, &selector));
    }
    errors
}

fn validate_kept(object: &Value, old: &Value) -> ErrorList {
    let kept = |name: &str, form: &'static str| {
        let path = FieldPath::new("spec").child(name);
        let (new, old) = (rules::value_at(object, path.as_str()), rules::value_at(old, path.as_str()));
        pintle_internal_form::validate_immutable(new, old, &path, form)
    };
    let mut errors = validate_completions(object, old);
    errors.extend(workload::validate_selector_is_kept(object, old));
    errors.extend(validate_template_kept(object, old, MutableTemplate::of_gates()));
    for (name, form) in [
        ("completionMode", "?"),
        ("podFailurePolicy", "*batch.PodFailurePolicy"),
        ("backoffLimitPerIndex", "?"),
        ("managedBy", "?"),
        ("successPolicy", "*batch.SuccessPolicy"),
    ] {
        errors.extend(kept(name, form));
    }
    errors
}

/// Validates completions: an indexed job may change them together with its parallelism.
fn validate_completions(object: &Value, old: &Value) -> ErrorList {
    let path = FieldPath::new("spec.completions");
    let (new, stored) = (rules::value_at(object, path.as_str()), rules::value_at(old, path.as_str()));
    if !spec::is_indexed(rules::value_at(object, "spec")) {
        return validate_immutable_field(new, stored, &path);
    }
    if new == stored || new.is_null() || new == rules::value_at(object, "spec.parallelism") {
        return ErrorList::new();
    }
    vec![FieldError::invalid(&path, new.clone(), "can only be modified in tandem with spec.parallelism")]
}

/// The mutable fields of the template of a job that is suspended without running pods. Scheduling fields of a job that never
/// started may always change.
#[derive(Clone, Copy)]
struct MutableTemplate {
    scheduling: bool,
    resources: bool,
}

impl MutableTemplate {
    fn of_gates() -> MutableTemplate {
        MutableTemplate {
            scheduling: enabled(Gate::MutableSchedulingDirectivesForSuspendedJobs),
            resources: enabled(Gate::MutablePodResourcesForSuspendedJobs),
        }
    }
}

/// Validates the template: while a job is suspended without running pods, its scheduling fields and resources may
/// change.
fn validate_template_kept(object: &Value, old: &Value, mutable: MutableTemplate) -> ErrorList {
    let suspended = old.bool_at("spec.suspend");
    let not_started = old.at("status.startTime").is_none();
    let active = old.i64_at("status.active").unwrap_or_default();
    let may_change = suspended && (not_started || is_true(old, "Suspended")) && active == 0;
    let template = rules::value_at(object, "spec.template");
    let mut stored = rules::value_at(old, "spec.template").clone();
    let may_move = if mutable.scheduling { may_change } else { suspended && not_started };
    if may_move {
        for path in [
            "spec.affinity.nodeAffinity",
            "spec.nodeSelector",
            "spec.tolerations",
            "spec.schedulingGates",
            "metadata.annotations",
            "metadata.labels",
        ] {
            rules::keep(&mut stored, template, path);
        }
        // Where only one of both has an affinity, it may be one of nodes alone.
        keep_empty_affinity(&mut stored, template);
    }
    let (template, path) = (template.clone(), FieldPath::new("spec.template"));
    if !(mutable.resources && may_change) {
        return pintle_internal_form::validate_immutable(&template, &stored, &path, "core.PodTemplateSpec");
    }
    for path in ["spec.containers", "spec.initContainers"] {
        keep_resources(&mut stored, &template, path);
    }
    let (new, stored) = (rules::value_at(&template, "spec"), rules::value_at(&stored, "spec"));
    pintle_internal_form::validate_immutable(new, stored, &path.child("spec"), "core.PodSpec")
}

fn keep_resources(stored: &mut Value, template: &Value, path: &str) {
    let new = template.items_at(path);
    let old = stored.items_at_mut(path);
    if new.len() == old.len() {
        for (old, new) in old.iter_mut().zip(new) {
            if old.str_at("name") == new.str_at("name") {
                rules::keep(old, new, "resources");
            }
        }
    }
}

fn keep_empty_affinity(stored: &mut Value, template: &Value) {
    const AFFINITY: &str = "spec.affinity";
    if stored.map_at(AFFINITY).is_empty() && template.map_at(AFFINITY).is_empty() {
        rules::keep(stored, template, AFFINITY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    fn job(spec: Value) -> Value {
        let mut object = json!({
            "metadata": {"name": "j", "namespace": "n", "uid": "u1"},
            "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}},
        });
        object["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        Job.set_defaults(&mut object);
        object
    }

    #[test]
    fn selectors_are_made_from_the_uid() {
        let mut object = job(json!({}));
        generate_selector(&mut object, true);
        assert_eq!(object["spec"]["selector"], json!({"matchLabels": {CONTROLLER_UID: "u1"}}));
        let labels = json!({
            CONTROLLER_UID: "u1", LEGACY_CONTROLLER_UID: "u1", JOB_NAME: "j", LEGACY_JOB_NAME: "j",
        });
        assert_eq!(object["spec"]["template"]["metadata"]["labels"], labels);
        Job.canonicalize(&mut object);
        assert_eq!(object["metadata"]["labels"], labels);
        assert_eq!(validate(&object, None), []);
        object["spec"]["template"]["metadata"]["labels"][LEGACY_JOB_NAME] = json!("forged");
        let fields: Vec<String> =
            validate(&object, None).iter().map(|error| error.field.to_string()).collect();
        assert_eq!(fields, ["spec.template.metadata.labels[job-name]"]);
    }

    #[test]
    fn a_selector_that_was_not_generated_is_shown_in_the_order_of_its_type() {
        let mut object = job(json!({}));
        generate_selector(&mut object, true);
        object.set("spec.selector.matchExpressions", json!([{"key": "a", "operator": "Exists"}]));
        let errors: Vec<String> = validate(&object, None).iter().map(ToString::to_string).collect();
        let expected = r#"spec.selector: Invalid value: {"matchLabels":{"batch.kubernetes.io/controller-uid":"u1"},"matchExpressions":[{"key":"a","operator":"Exists"}]}: `selector` not auto-generated"#;
        assert!(errors.iter().any(|error| error == expected), "{errors:#?}");
    }

    #[test]
    fn only_labels_copied_from_the_template_follow_it() {
        let check = |lacks_labels: bool, count: usize| {
            let mut object = job(json!({}));
            object.set("metadata.labels", json!({"app": "x"}));
            object.set(TEMPLATE_LABELS, json!({"app": "x"}));
            generate_selector(&mut object, lacks_labels);
            assert_eq!(object.map_at("metadata.labels").len(), count);
            assert_eq!(object.map_at(TEMPLATE_LABELS).len(), 5);
        };
        check(true, 5);
        check(false, 1);
    }

    #[test]
    fn completions_and_parallelism_default_together() {
        let check = |spec: Value, completions: Value, parallelism: i64| {
            let object = job(spec);
            assert_eq!(rules::value_at(&object, "spec.completions"), &completions);
            assert_eq!(object.i64_at("spec.parallelism"), Some(parallelism));
        };
        check(json!({}), json!(1), 1);
        check(json!({"parallelism": 2}), Value::Null, 2);
        check(json!({"completions": 4}), json!(4), 1);
    }

    #[test]
    fn only_suspended_jobs_change_their_template() {
        let check = |suspend: bool, change: fn(&mut Value), fields: &[&str]| {
            let old = job(json!({"suspend": suspend}));
            let mut new = old.clone();
            change(&mut new["spec"]["template"]);
            let errors =
                validate_template_kept(&new, &old, MutableTemplate { scheduling: true, resources: true });
            let errors: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
            assert_eq!(errors, fields);
        };
        let select_node = |template: &mut Value| template.set("spec.nodeSelector", json!({"x": "y"}));
        let ask_for_more = |template: &mut Value| {
            template["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "2"}});
        };
        let change_image = |template: &mut Value| template["spec"]["containers"][0]["image"] = json!("j");
        check(true, select_node, &[]);
        check(true, ask_for_more, &[]);
        check(true, change_image, &["spec.template.spec"]);
        check(false, select_node, &["spec.template"]);
        check(false, |template| template.set("spec.affinity", json!({})), &["spec.template"]);
    }

    #[test]
    fn gates_decide_what_suspended_jobs_change() {
        let errors = |status: Value, change: (&str, Value), scheduling: bool, resources: bool| {
            let mut old = job(json!({"suspend": true}));
            old.set("status", status);
            let mut new = old.clone();
            new.set(change.0, change.1);
            validate_template_kept(&new, &old, MutableTemplate { scheduling, resources }).len()
        };
        let fresh = || json!({});
        let paused = || json!({"startTime": "2026-01-01T00:00:00Z", "conditions": [{"type": "Suspended", "status": "True"}]});
        let node = || ("spec.template.spec.nodeSelector", json!({"x": "y"}));
        let more = || {
            ("spec.template.spec.containers", {
                let mut containers = job(json!({}))["spec"]["template"]["spec"]["containers"].clone();
                containers[0]["resources"] = json!({"requests": {"cpu": "2"}});
                containers
            })
        };
        assert_eq!([errors(fresh(), node(), false, false), errors(fresh(), more(), true, false)], [0, 1]);
        assert_eq!([errors(paused(), node(), false, true), errors(paused(), node(), true, false)], [1, 0]);
        assert_eq!([errors(paused(), more(), true, false), errors(paused(), more(), false, true)], [1, 0]);
    }

    #[test]
    fn completions_change_with_parallelism_only() {
        let check = |mode: &str, completions: i64, parallelism: i64, count: usize| {
            let old = job(json!({"completionMode": mode, "completions": 3, "parallelism": 3}));
            let new =
                job(json!({"completionMode": mode, "completions": completions, "parallelism": parallelism}));
            assert_eq!(validate_completions(&new, &old).len(), count);
        };
        check("Indexed", 5, 5, 0);
        check("Indexed", 4, 5, 1);
        check("NonIndexed", 5, 5, 1);
        check("NonIndexed", 3, 5, 0);
    }
}
