//! The pod certificate requests of a node: each is for a pod that runs on the node.
//!
//! Differences that a cache which is behind explains are no refusals, so that kubelets try again.

use super::lookup::find;
use crate::{AdmissionRequest, Operation};
use pintle_feature_gates::{Gate, enabled};
use pintle_go_forms::quote;
use pintle_machinery::{Status, StatusReason, Value, ValueExt, meta::ObjectMeta};
use std::sync::Arc;

const MIRROR: &str = "kubernetes.io/config.mirror";

pub(super) async fn admit(request: &AdmissionRequest<'_>, node: &str) -> Result<(), Status> {
    match enabled(Gate::PodCertificateRequest) {
        true => check(request, node).await,
        false => Err(request.forbidden("PodCertificateRequest feature gate is disabled")),
    }
}

/// The checks behind the open gate.
pub(super) async fn check(request: &AdmissionRequest<'_>, node: &str) -> Result<(), Status> {
    if request.operation != Operation::Create {
        return Err(request.forbidden(format!("unexpected operation {}", request.operation.as_str())));
    }
    if !request.subresource.is_empty() {
        return Err(request.forbidden(format!("unexpected subresource {}", request.subresource)));
    }
    let of_spec = |field: &str| request.object.str_at(&format!("spec.{field}"));
    let node_name = of_spec("nodeName");
    if node_name != node {
        return Err(request.forbidden(format!(
            "PodCertificateRequest.Spec.NodeName={}, which is not the requesting node {}",
            quote(node_name),
            quote(node)
        )));
    }
    let of_pod = format!("PodCertificateRequest for pod {}", qualified(request, of_spec("podName")));
    let named = lookup(request, "nodes", "node", "", node_name).await?;
    if named.uid() != of_spec("nodeUID") {
        let (own, actual) = (quote(of_spec("nodeUID")), quote(named.uid()));
        return Err(Status::unknown(format!(
            "{of_pod} names node UID {own}, inconsistent with the running node ({actual})"
        )));
    }
    let pod = lookup(request, "pods", "pod", request.namespace, of_spec("podName")).await?;
    check_pod(request, &pod, &of_pod)?;
    let (own, actual) = (of_spec("serviceAccountName"), pod.str_at("spec.serviceAccountName"));
    if own != actual {
        return Err(request.forbidden(format!(
            "{of_pod} contains serviceAccountName ({}) that differs from running pod ({})",
            quote(own),
            quote(actual)
        )));
    }
    let account = lookup(request, "serviceaccounts", "service account", request.namespace, own).await?;
    if account.uid() != of_spec("serviceAccountUID") {
        return Err(Status::unknown(format!(
            "{of_pod} names service account UID {}, which differs from the running service account ({})",
            quote(of_spec("serviceAccountUID")),
            quote(account.uid())
        )));
    }
    Ok(())
}

/// Requires that the pod runs on the node.
fn check_pod(request: &AdmissionRequest<'_>, pod: &Value, of_pod: &str) -> Result<(), Status> {
    let (uid, node) = (request.object.str_at("spec.podUID"), request.object.str_at("spec.nodeName"));
    if pod.uid() != uid {
        return Err(Status::unknown(format!(
            "{of_pod} contains pod UID ({}) which differs from running pod {}",
            quote(uid),
            quote(pod.uid())
        )));
    }
    let name = qualified(request, pod.name());
    if pod.str_at("spec.nodeName") != node {
        let node = quote(node);
        let why = format!("pod {name} is not running on node {node} named in the PodCertificateRequest");
        return Err(request.forbidden(why));
    }
    match pod.annotation(MIRROR) {
        Some(_) => Err(request.forbidden(format!("pod {name} is a mirror pod"))),
        None => Ok(()),
    }
}

/// Returns an object that the request names.
async fn lookup(
    request: &AdmissionRequest<'_>,
    resource: &'static str,
    what: &str,
    namespace: &str,
    name: &str,
) -> Result<Arc<Value>, Status> {
    find(request, resource, namespace, name).await.map_err(|status| {
        let shown = if namespace.is_empty() { quote(name) } else { qualified(request, name) };
        let message =
            format!("while retrieving {what} {shown} named in the PodCertificateRequest: {}", status.message);
        match status.reason {
            StatusReason::NotFound => Status::unknown(message),
            _ => request.forbidden(message),
        }
    })
}

fn qualified(request: &AdmissionRequest<'_>, name: &str) -> String {
    quote(&format!("{}/{name}", request.namespace))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        AdmissionPlugin, Steps,
        testing::{Objects, admit},
    };
    use pintle_machinery::json;
    use pintle_registry::BoxFuture;

    /// The checks for the node `one`, with the gate open.
    struct Checks;

    impl AdmissionPlugin for Checks {
        fn name(&self) -> &'static str {
            "Checks"
        }

        fn steps(&self) -> Steps {
            Steps::Admit
        }

        fn handles(&self, _request: &AdmissionRequest<'_>) -> bool {
            true
        }

        fn admit<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
            Box::pin(check(request, "one"))
        }
    }

    fn create(change: &[(&str, &str)]) -> Result<(), String> {
        let object = |name: &str, spec: Value| json!({"metadata": {"name": name, "namespace": "n", "uid": format!("uid-{name}")}, "spec": spec});
        let mut mirror = object("mirror", json!({"nodeName": "one", "serviceAccountName": "robot"}));
        mirror["metadata"]["annotations"] = json!({(MIRROR): "x"});
        let objects = Objects::new([
            ("nodes", json!({"metadata": {"name": "one", "uid": "uid-one"}})),
            ("pods", object("mine", json!({"nodeName": "one", "serviceAccountName": "robot"}))),
            ("pods", object("theirs", json!({"nodeName": "two", "serviceAccountName": "robot"}))),
            ("pods", mirror),
            ("serviceaccounts", object("robot", json!({}))),
        ]);
        let mut request = object(
            "r",
            json!({
                "nodeName": "one", "nodeUID": "uid-one", "podName": "mine", "podUID": "uid-mine",
                "serviceAccountName": "robot", "serviceAccountUID": "uid-robot",
            }),
        );
        for (field, value) in change {
            request.set(&format!("spec.{field}"), *value);
        }
        let resource = "podcertificaterequests";
        admit(&Checks, &objects, Operation::Create, resource, "", request, None).map(drop)
    }

    #[test]
    fn requests_are_for_pods_of_the_node() {
        assert_eq!(create(&[]), Ok(()));
        let check = |change: &[(&str, &str)], why: &str| {
            let refused = create(change).unwrap_err();
            assert!(refused.ends_with(why), "{refused}");
        };
        check(
            &[("nodeName", "two")],
            "PodCertificateRequest.Spec.NodeName=\"two\", which is not the requesting node \"one\"",
        );
        check(
            &[("nodeUID", "x")],
            "PodCertificateRequest for pod \"n/mine\" names node UID \"x\", inconsistent with the running node (\"uid-one\")",
        );
        check(
            &[("podName", "none")],
            "while retrieving pod \"n/none\" named in the PodCertificateRequest: pod \"none\" not found",
        );
        check(
            &[("podUID", "x")],
            "PodCertificateRequest for pod \"n/mine\" contains pod UID (\"x\") which differs from running pod \"uid-mine\"",
        );
        check(
            &[("podName", "theirs"), ("podUID", "uid-theirs")],
            "pod \"n/theirs\" is not running on node \"one\" named in the PodCertificateRequest",
        );
        check(&[("podName", "mirror"), ("podUID", "uid-mirror")], "pod \"n/mirror\" is a mirror pod");
        check(
            &[("serviceAccountName", "other")],
            "PodCertificateRequest for pod \"n/mine\" contains serviceAccountName (\"other\") that differs from running pod (\"robot\")",
        );
        check(
            &[("serviceAccountUID", "x")],
            "PodCertificateRequest for pod \"n/mine\" names service account UID \"x\", which differs from the running service account (\"uid-robot\")",
        );
    }
}
