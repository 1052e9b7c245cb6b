//! Table tests of the strategies of pods: inputs, and the stored objects or errors.

mod creates;
mod subresources;
mod updates;

use super::resource;
use crate::core::node::KubeletAddresses;
use pintle_machinery::{ErrorList, Value, ValueExt, json};
use pintle_registry::testing::{MemoryRegistry, with_context};
use pintle_registry::{Strategy, SubresourceKind};
use std::sync::Arc;

/// A pod with one container, merged with the given spec.
fn pod(spec: Value) -> Value {
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "ns"},
        "spec": {"containers": [{"name": "c", "image": "i"}], "serviceAccountName": "default"},
    });
    merge(&mut pod, &json!({"spec": spec}));
    pod
}

/// Applies a merge patch.
fn merge(object: &mut Value, patch: &Value) {
    for (field, value) in patch.as_object().unwrap() {
        match value {
            Value::Object(_) => {
                object.set_default(field, json!({}));
                merge(object.get_mut(field).unwrap(), value);
            }
            Value::Null => drop(object.remove_at(field)),
            value => drop(object.as_object_mut().unwrap().insert(field.clone(), value.clone())),
        }
    }
}

/// Creates a pod: returns it as it is stored, and the validation errors.
fn create(mut pod: Value) -> (Value, ErrorList) {
    let strategy = resource(&KubeletAddresses::default(), None).strategy;
    let errors = with_context(&MemoryRegistry::default(), "ns", false, |context| {
        strategy.set_defaults(&mut pod);
        strategy.prepare_for_create(context, &mut pod);
        strategy.validate(context, &pod)
    });
    (pod, errors)
}

fn warnings_of(mut pod: Value) -> Vec<String> {
    let strategy = resource(&KubeletAddresses::default(), None).strategy;
    with_context(&MemoryRegistry::default(), "ns", false, |context| {
        strategy.set_defaults(&mut pod);
        let mut warnings = strategy.preparation_warnings(&pod);
        strategy.prepare_for_create(context, &mut pod);
        warnings.extend(strategy.warnings_on_create(context, &pod));
        warnings
    })
}

/// A stored pod: created, with a resourceVersion, and merged with the given fields.
fn stored(spec: Value, rest: Value) -> Value {
    let (mut pod, errors) = create(pod(spec));
    assert!(errors.is_empty(), "{errors:?}");
    pod.set("metadata.uid", "u");
    pod.set("metadata.resourceVersion", "1");
    merge(&mut pod, &rest);
    pod
}

/// Patches a pod through a subresource ("" for none): returns it as it is stored, and the validation errors.
fn update(old: &Value, subresource: &str, patch: &Value) -> (Value, ErrorList) {
    let resource = resource(&KubeletAddresses::default(), None);
    let strategy: Arc<dyn Strategy> = match resource.subresource(subresource).map(|part| &part.kind) {
        Some(SubresourceKind::Object { strategy, .. }) => strategy.clone(),
        _ => resource.strategy.clone(),
    };
    let mut new = old.clone();
    merge(&mut new, patch);
    let errors = with_context(&MemoryRegistry::default(), "ns", false, |context| {
        strategy.set_defaults(&mut new);
        strategy.prepare_for_update(context, &mut new, old);
        strategy.validate_update(context, &new, old)
    });
    (new, errors)
}

fn texts(errors: &ErrorList) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn a_pod_that_does_not_run_is_deleted_at_once() {
    let running = json!({"spec": {"nodeName": "n", "terminationGracePeriodSeconds": 30}});
    let rows = [
        (json!({"spec": {"terminationGracePeriodSeconds": 30}}), None, 0),
        (json!({"spec": {"terminationGracePeriodSeconds": 30}}), Some(5), 0),
        (running.clone(), None, 30),
        (running.clone(), Some(5), 5),
        (running.clone(), Some(0), 0),
        (running, Some(-1), 1),
        (json!({"spec": {"nodeName": "n"}, "status": {"phase": "Failed"}}), Some(5), 0),
        (json!({"spec": {"nodeName": "n"}, "status": {"phase": "Succeeded"}}), None, 0),
    ];
    for (pod, requested, grace) in rows {
        let answer = with_context(&MemoryRegistry::default(), "ns", false, |context| {
            resource(&KubeletAddresses::default(), None).strategy.graceful_deletion(context, &pod, requested)
        });
        assert_eq!(answer, Some(grace), "{pod} {requested:?}");
    }
}
