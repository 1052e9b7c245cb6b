//! `PodResizeValidator`: refuses a resize that the pod's node cannot carry out
//! (<https://kubernetes.io/docs/tasks/configure-pod-container/resize-container-resources/>).

use super::{
    pods::{changes_bound_pod, node_of},
    quantities::{pod_requests, quantities},
};
use crate::{AdmissionPlugin, AdmissionRequest, Operation, Steps};
use pintle_go_forms::quote;
use pintle_machinery::{Quantity, Status, StatusCause, Value, ValueExt, meta::ObjectMeta};
use pintle_registry::BoxFuture;

/// The plugin.
#[derive(Debug, Default, Clone, Copy)]
pub struct PodResizeValidator;

impl AdmissionPlugin for PodResizeValidator {
    fn name(&self) -> &'static str {
        "PodResizeValidator"
    }

    fn steps(&self) -> Steps {
        Steps::Validate
    }

    fn handles(&self, request: &AdmissionRequest<'_>) -> bool {
        request.operation == Operation::Update && request.subresource == "resize" && request.is_of("", "pods")
    }

    fn validate<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            if !changes_bound_pod(request) {
                return Ok(());
            }
            let node = node_of(request).await?;
            check_operating_system(&node).map_err(|why| refusal(request, &why, "UnsupportedPlatform"))?;
            check_allocatable(&request.object, &node).map_err(|why| refusal(request, &why, "NodeCapacity"))
        })
    }
}

fn refusal(request: &AdmissionRequest<'_>, why: &str, reason: &str) -> Status {
    let mut status = request.forbidden(why);
    let cause = StatusCause { reason: reason.to_owned(), ..StatusCause::default() };
    status.details.get_or_insert_default().causes.push(cause);
    status
}

/// A node without the operating system label counts as Linux.
fn check_operating_system(node: &Value) -> Result<(), String> {
    match node.label("kubernetes.io/os") {
        None | Some("linux") => Ok(()),
        Some(other) => {
            let (name, other) = (quote(node.name()), quote(other));
            Err(format!("pod resize is only supported on linux nodes, node {name} is {other}"))
        }
    }
}

/// Compares only cpu and memory, the resizable resources. A resource absent from `allocatable` counts as zero.
fn check_allocatable(pod: &Value, node: &Value) -> Result<(), String> {
    let requests = pod_requests(pod, |container| quantities(container.map_at("resources.requests")));
    let allocatable = quantities(node.map_at("status.allocatable"));
    let compare = |name: &str, show: fn(&Quantity) -> i64| {
        let (requested, allocatable) =
            (requests.get(name)?, allocatable.get(name).cloned().unwrap_or_default());
        (*requested > allocatable)
            .then(|| format!("{name}, requested: {}, allocatable: {}", show(requested), show(&allocatable)))
    };
    let lacking: Vec<String> = [compare("cpu", Quantity::milli_value), compare("memory", Quantity::value)]
        .into_iter()
        .flatten()
        .collect();
    match lacking.is_empty() {
        true => Ok(()),
        false => Err(format!("node didn't have enough allocatable resources: {}", lacking.join("; "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Objects, admit};
    use pintle_machinery::json;

    fn resize(node: &str, requests: Value, changes: bool) -> Result<(), String> {
        let nodes = [
            json!({"metadata": {"name": "small"}, "status": {"allocatable": {"cpu": "1500m", "memory": "1Gi"}}}),
            json!({"metadata": {"name": "empty", "labels": {"kubernetes.io/os": "linux"}}}),
            json!({"metadata": {"name": "windows", "labels": {"kubernetes.io/os": "windows"}}}),
        ];
        let objects = Objects::new(nodes.map(|node| ("nodes", node)));
        let pod = |generation: i64| {
            json!({
                "metadata": {"name": "p", "namespace": "n", "generation": generation},
                "spec": {
                    "nodeName": node,
                    "containers": [{"name": "c", "resources": {"requests": requests}}],
                    "overhead": {"cpu": "500m"},
                },
            })
        };
        let (old, new) = (pod(1), pod(1 + i64::from(changes)));
        admit(&PodResizeValidator, &objects, Operation::Update, "pods", "resize", new, Some(&old))
            .map(drop)
            .map_err(|message| message.trim_start_matches("pods \"p\" is forbidden: ").to_owned())
    }

    #[test]
    fn resizes_within_the_allocatable_amounts_of_the_node_are_admitted() {
        assert_eq!(resize("small", json!({"cpu": "1", "memory": "1Gi", "example.com/x": "3"}), true), Ok(()));
        assert_eq!(resize("", json!({"cpu": "100"}), true), Ok(()));
        assert_eq!(resize("gone", json!({"cpu": "100"}), false), Ok(()));
    }

    #[test]
    fn resizes_that_the_node_can_never_carry_out_are_refused() {
        let check = |node: &str, requests: Value, message: &str| {
            assert_eq!(resize(node, requests, true).unwrap_err(), message);
        };
        check("gone", json!({}), "node \"gone\" not found");
        check(
            "windows",
            json!({}),
            "pod resize is only supported on linux nodes, node \"windows\" is \"windows\"",
        );
        let lacking = "node didn't have enough allocatable resources: ";
        check(
            "small",
            json!({"cpu": "1001m", "memory": "2Gi"}),
            &format!(
                "{lacking}cpu, requested: 1501, allocatable: 1500; memory, requested: 2147483648, allocatable: 1073741824"
            ),
        );
        check("empty", json!({}), &format!("{lacking}cpu, requested: 500, allocatable: 0"));
    }
}
