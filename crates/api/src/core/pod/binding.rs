//! `pods/binding` and `bindings`: assign a node to a pod, as the scheduler does.

use super::conditions;
use jiff::Timestamp;
use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, GroupResource, Map, Status, StatusReason, Value, ValueExt, json,
    meta::ObjectMeta, status,
};
use pintle_registry::{BoxFuture, NamedCreater, Preconditions, RequestContext, WriteOptions};

/// Binds the pod that the body names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BindingCreater;

impl NamedCreater for BindingCreater {
    fn prepare<'a>(
        &'a self,
        context: &'a RequestContext<'a>,
        body: &'a mut Value,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(std::future::ready(check(context, body)))
    }

    fn create<'a>(
        &'a self,
        context: &'a RequestContext<'a>,
        body: Value,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(bind(context, body))
    }

    /// The uid is a precondition on the pod.
    fn keeps_system_metadata(&self) -> bool {
        true
    }
}

fn check(context: &RequestContext<'_>, binding: &Value) -> Result<(), Status> {
    // Through `bindings` only the body has the name.
    if !context.name.is_empty() && context.name != binding.name() {
        return Err(Status::bad_request("name in URL does not match name in Binding object"));
    }
    let errors = validate(binding);
    match errors.is_empty() {
        true => Ok(()),
        false => Err(Status::unknown(status::aggregate(errors.iter().map(ToString::to_string)))),
    }
}

async fn bind(context: &RequestContext<'_>, binding: Value) -> Result<Value, Status> {
    let name = binding.name().to_owned();
    if name.is_empty() {
        return Err(Status::bad_request("Name parameter required."));
    }
    let now = context.now;
    let pods = GroupResource::new("", "pods");
    // They tell which pod is meant.
    let preconditions = Preconditions {
        uid: Some(binding.uid().to_owned()),
        resource_version: Some(binding.resource_version().to_owned()),
    };
    let change = move |pod: Value| assign(pod, &binding, now);
    let options = WriteOptions {
        dry_run: context.dry_run,
        user: Some(context.user.clone()),
        subresource: "binding",
        preconditions: preconditions.without_empty(),
        ..WriteOptions::default()
    };
    let assigned = context.registry.update(&pods, context.namespace, &name, Box::new(change), options).await;
    match assigned {
        Ok(_) => Ok(success()),
        Err(error) => Err(refusal(error, &name)),
    }
}

/// The answer to a binding that failed: a conflict, if the error has no status of its own. That of the store has none.
fn refusal(error: Status, name: &str) -> Status {
    match error.reason {
        StatusReason::Unknown => {
            Status::conflict(&GroupResource::new("", "pods/binding"), name, &error.message)
        }
        _ => error,
    }
}

/// The response of subresources without an object to return.
pub(super) fn success() -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
}

fn validate(binding: &Value) -> ErrorList {
    let target = FieldPath::new("target");
    let mut errors = ErrorList::new();
    let kind = binding.str_at("target.kind");
    if !matches!(kind, "" | "Node") {
        errors.push(
            FieldError::not_supported(&target.child("kind"), kind, &["Node", "<empty>"]).of_plain_text(),
        );
    }
    if binding.str_at("target.name").is_empty() {
        errors.push(FieldError::required(&target.child("name"), ""));
    }
    errors
}

/// Assigns the node to the pod. Called again with the newer pod after a conflict.
fn assign(mut pod: Value, binding: &Value, now: Timestamp) -> Result<Value, Status> {
    let name = pod.name().to_owned();
    let why = if pod.is_terminating() {
        Some(format!("pod {name} is being deleted, cannot be assigned to a host"))
    } else if !pod.str_at("spec.nodeName").is_empty() {
        let node = pintle_go_forms::quote(pod.str_at("spec.nodeName"));
        Some(format!("pod {name} is already assigned to node {node}"))
    } else if !pod.items_at("spec.schedulingGates").is_empty() {
        Some(format!("pod {name} has non-empty .spec.schedulingGates"))
    } else {
        None
    };
    if let Some(why) = why {
        return Err(Status::unknown(why));
    }
    pod.set("spec.nodeName", binding.str_at("target.name"));
    if enabled(Gate::ClearingNominatedNodeNameAfterBinding) {
        // The nomination is obsolete.
        pod.remove_at("status.nominatedNodeName");
    }
    let fields: &[&str] = match enabled(Gate::PodTopologyLabelsAdmission) {
        true => &["metadata.annotations", "metadata.labels"],
        false => &["metadata.annotations"],
    };
    for field in fields {
        let members: &Map = binding.map_at(field);
        if !members.is_empty() {
            pod.object_at_mut(field).extend(members.clone());
        }
    }
    let condition =
        conditions::Condition { condition_type: "PodScheduled", status: "True", reason: "", message: "" };
    conditions::update(&mut pod, &condition, now);
    Ok(pod)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binding_that_fails_without_a_status_is_a_conflict() {
        let pods = GroupResource::new("", "pods");
        let bound = json!({"metadata": {"name": "a"}, "spec": {"nodeName": "n"}});
        let rows = [
            (
                assign(bound, &json!({}), Timestamp::UNIX_EPOCH).unwrap_err(),
                409,
                "Operation cannot be fulfilled on pods/binding \"a\": pod a is already assigned to node \"n\"",
            ),
            (
                Status::unknown("etcdserver: mvcc: database space exceeded"),
                409,
                "Operation cannot be fulfilled on pods/binding \"a\": etcdserver: mvcc: database space exceeded",
            ),
            (Status::not_found(&pods, "a"), 404, "pods \"a\" not found"),
        ];
        for (error, code, message) in rows {
            let refusal = refusal(error, "a");
            assert_eq!((refusal.code, refusal.message.as_str()), (code, message));
        }
    }
}
