//! `RuntimeClass`: sets a pod's overhead and scheduling constraints from its runtime class
//! (<https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#runtimeclass>).

use super::tolerations::{self, Toleration};
use crate::{AdmissionPlugin, AdmissionRequest, Operation, Steps};
use pintle_go_forms::quote;
use pintle_machinery::{GroupResource, Quantity, Status, Text, Value, ValueExt};
use pintle_registry::BoxFuture;
use std::sync::Arc;

/// The plugin.
#[derive(Debug)]
pub struct RuntimeClass {
    classes: GroupResource,
}

impl Default for RuntimeClass {
    fn default() -> RuntimeClass {
        RuntimeClass { classes: GroupResource::new("node.k8s.io", "runtimeclasses") }
    }
}

impl AdmissionPlugin for RuntimeClass {
    fn name(&self) -> &'static str {
        "RuntimeClass"
    }

    fn steps(&self) -> Steps {
        Steps::Both
    }

    fn handles(&self, request: &AdmissionRequest<'_>) -> bool {
        request.operation == Operation::Create && request.is_for("", "pods")
    }

    fn admit<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let Some(class) = self.class(request).await? else {
                return Ok(());
            };
            set_overhead(request, &class)?;
            set_scheduling(request, &class)
        })
    }

    fn validate<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let class = self.class(request).await?;
            let overhead = request.object.at("spec.overhead");
            let has_overhead = overhead.is_some() || request.context.empty_fields.contains("spec.overhead");
            match (class.as_deref().and_then(|class| class.at("overhead")), overhead) {
                (Some(own), _) if !same_quantities(own.at("podFixed"), overhead) => {
                    Err(request.forbidden(OVERHEAD_DIFFERS))
                }
                (None, _) if has_overhead => Err(request.forbidden(
                    "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
                )),
                _ => Ok(()),
            }
        })
    }
}

const OVERHEAD_DIFFERS: &str = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

impl RuntimeClass {
    async fn class(&self, request: &AdmissionRequest<'_>) -> Result<Option<Arc<Value>>, Status> {
        let Some(name) = request.object.at("spec.runtimeClassName").and_then(Value::as_str) else {
            return Ok(None);
        };
        // An empty name cannot be looked up, which is no refusal but an error.
        if name.is_empty() {
            return Err(Status::unknown("resource name may not be empty"));
        }
        match request.find(&self.classes, "", name).await? {
            Some(class) => Ok(Some(class)),
            None => Err(match AdmissionRequest::unusable_name(name) {
                Some(why) => Status::unknown(why),
                None => request.forbidden(format!("pod rejected: RuntimeClass {} not found", quote(name))),
            }),
        }
    }
}

fn set_overhead(request: &mut AdmissionRequest<'_>, class: &Value) -> Result<(), Status> {
    if class.at("overhead").is_none() {
        return Ok(());
    }
    let fixed = class.at("overhead.podFixed");
    let own = request.object.at("spec.overhead");
    if !request.object.map_at("spec.overhead").is_empty() && !same_quantities(own, fixed) {
        return Err(request.forbidden(OVERHEAD_DIFFERS));
    }
    match fixed {
        Some(fixed) => request.object.to_mut().set("spec.overhead", fixed.clone()),
        None => drop(request.object.to_mut().remove_at("spec.overhead")),
    }
    Ok(())
}

fn set_scheduling(request: &mut AdmissionRequest<'_>, class: &Value) -> Result<(), Status> {
    let Some(scheduling) = class.at("scheduling") else {
        return Ok(());
    };
    let own = request.object.map_at("spec.nodeSelector");
    for (key, value) in scheduling.map_at("nodeSelector") {
        if let Some(own) = own.get(key).filter(|own| *own != value) {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            return Err(request.forbidden(format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {}; pod.spec.nodeSelector[{key}] = {}",
                text(value),
                text(own)
            )));
        }
    }
    let selector = scheduling.map_at("nodeSelector");
    if !selector.is_empty() {
        request.object.to_mut().object_at_mut("spec.nodeSelector").extend(selector.clone());
    }
    let own = request.object.items_at("spec.tolerations");
    let merged = merge_tolerations(own, scheduling.items_at("tolerations"));
    if !merged.is_empty() {
        request.object.to_mut().set("spec.tolerations", merged);
    }
    Ok(())
}

/// Merges both lists without tolerations that another one includes; of equal ones the first stays.
fn merge_tolerations(first: &[Value], second: &[Value]) -> Vec<Value> {
    let all = || first.iter().chain(second);
    let tolerations: Vec<Toleration> = all().map(Toleration::of).collect();
    let is_kept = tolerations::widest(&tolerations.iter().collect::<Vec<_>>());
    all().zip(is_kept).filter(|(_, is_kept)| *is_kept).map(|(own, _)| own.clone()).collect()
}

/// Whether two lists have equal amounts, in any notation.
fn same_quantities(one: Option<&Value>, other: Option<&Value>) -> bool {
    let list = |value: Option<&Value>| -> Vec<(Text, Quantity)> {
        let members = value.and_then(Value::as_object).into_iter().flatten();
        members.map(|(name, value)| (name.clone(), Quantity::from_tree(value).unwrap_or_default())).collect()
    };
    list(one) == list(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Objects, admit};
    use pintle_machinery::{codec::EmptyField, json};
    use std::slice::from_ref;

    fn create(spec: Value) -> Result<Value, String> {
        let full = json!({
            "metadata": {"name": "full"},
            "overhead": {"podFixed": {"cpu": "250m"}},
            "scheduling": {"nodeSelector": {"runtime": "full"}, "tolerations": [{"key": "runtime"}]},
        });
        let objects = Objects::new([
            ("runtimeclasses", full),
            ("runtimeclasses", json!({"metadata": {"name": "plain"}})),
        ]);
        let pod = json!({"metadata": {"name": "p", "namespace": "n"}, "spec": spec});
        admit(&RuntimeClass::default(), &objects, Operation::Create, "pods", "", pod, None)
            .map(|pod| pod["spec"].clone())
            .map_err(|message| message.trim_start_matches("pods \"p\" is forbidden: ").to_owned())
    }

    #[test]
    fn classes_bring_overhead_and_scheduling() {
        assert_eq!(
            create(json!({"runtimeClassName": "full", "tolerations": [{"operator": "Exists", "key": "x"}]})),
            Ok(json!({
                "runtimeClassName": "full",
                "overhead": {"cpu": "250m"},
                "nodeSelector": {"runtime": "full"},
                "tolerations": [{"operator": "Exists", "key": "x"}, {"key": "runtime"}],
            }))
        );
        assert_eq!(create(json!({"runtimeClassName": "plain"})), Ok(json!({"runtimeClassName": "plain"})));
        assert!(create(json!({"runtimeClassName": "full", "overhead": {"cpu": "0.25"}})).is_ok());
    }

    #[test]
    fn what_contradicts_the_class_is_refused() {
        let check = |spec: Value, message: &str| assert_eq!(create(spec).unwrap_err(), message);
        check(json!({"runtimeClassName": "none"}), "pod rejected: RuntimeClass \"none\" not found");
        check(json!({"runtimeClassName": "\0"}), "pod rejected: RuntimeClass \"\\x00\" not found");
        check(json!({"runtimeClassName": "full", "overhead": {"cpu": "1"}}), OVERHEAD_DIFFERS);
        check(
            json!({"overhead": {"cpu": "1"}}),
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        );
        check(
            json!({"runtimeClassName": "full", "nodeSelector": {"runtime": "other"}}),
            "conflict: runtimeClass.scheduling.nodeSelector[runtime] = full; pod.spec.nodeSelector[runtime] = other",
        );
    }

    #[test]
    fn names_that_cannot_be_looked_up_are_errors() {
        assert_eq!(
            create(json!({"runtimeClassName": "a/b"})).unwrap_err(),
            "invalid resource name \"a/b\": [may not contain '/']"
        );
        assert_eq!(create(json!({"runtimeClassName": ""})).unwrap_err(), "resource name may not be empty");
    }

    #[test]
    fn empty_overhead_is_refused_without_overhead_of_a_class() {
        let request = crate::testing::Request {
            name: "p".to_owned(),
            object: json!({"metadata": {"name": "p", "namespace": "n"}, "spec": {}}),
            ..crate::testing::Request::new(Operation::Create, "", "v1", "pods", "n")
        };
        let field = EmptyField { path: "spec.overhead".to_owned(), value: json!({}) };
        request.empty_fields.set(vec![field]);
        let refused = request.with(async |request| RuntimeClass::default().validate(request).await);
        assert_eq!(
            refused.unwrap_err().message,
            "pods \"p\" is forbidden: pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
        );
    }

    #[test]
    fn tolerations_that_others_include_are_left_out() {
        let all = json!({"operator": "Exists"});
        let one = json!({"key": "a", "operator": "Exists", "effect": "NoExecute"});
        let brief = json!({"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5});
        assert_eq!(merge_tolerations(from_ref(&one), from_ref(&all)), [all]);
        assert_eq!(merge_tolerations(&[brief], from_ref(&one)), from_ref(&one));
        assert_eq!(merge_tolerations(from_ref(&one), from_ref(&one)), [one]);
    }
}
