use super::*;
use crate::testing::{Objects, admit_as};
use pintle_feature_gates::{FeatureGates, testing::override_gates};
use pintle_machinery::{Value, ValueExt, json};

const NODE: &str = "system:node:one";

/// Calls the plugin with a request of the node `one`, in namespace `n`.
fn call(
    operation: Operation,
    resource: &str,
    subresource: &str,
    object: Value,
    old: Option<&Value>,
) -> Result<(), String> {
    let pod = |name: &str, node: &str| {
        let metadata = json!({"name": name, "namespace": "n", "uid": format!("uid-{name}")});
        let tokens = json!({"sources": [{"serviceAccountToken": {"audience": "vault"}}]});
        json!({"metadata": metadata, "spec": {"nodeName": node, "volumes": [{"name": "t", "projected": tokens}]}})
    };
    let objects = Objects::new([
        ("nodes", json!({"metadata": {"name": "one", "uid": "uid-one"}})),
        ("pods", pod("mine", "one")),
        ("pods", pod("theirs", "two")),
    ]);
    let user =
        UserInfo { name: NODE.to_owned(), groups: vec!["system:nodes".to_owned()], ..UserInfo::default() };
    admit_as(user, &NodeRestriction, &objects, operation, resource, subresource, object, old).map(drop)
}

fn mirror_pod(change: impl FnOnce(&mut Value)) -> Value {
    let owner =
        json!({"apiVersion": "v1", "kind": "Node", "name": "one", "uid": "uid-one", "controller": true});
    let mut pod = json!({
        "metadata": {
            "name": "p", "namespace": "n", "annotations": {"kubernetes.io/config.mirror": "x"},
            "ownerReferences": [owner],
        },
        "spec": {"nodeName": "one"},
    });
    change(&mut pod);
    pod
}

#[test]
fn a_node_creates_only_its_mirror_pods() {
    let create = |change: fn(&mut Value)| {
        let refused = call(Operation::Create, "pods", "", mirror_pod(change), None);
        refused.map_err(|why| why.trim_start_matches("pods \"p\" is forbidden: ").to_owned())
    };
    assert_eq!(create(|_| ()), Ok(()));
    let check = |change: fn(&mut Value), why: &str| assert_eq!(create(change).unwrap_err(), why);
    check(
        |pod| drop(pod.remove_at("metadata.annotations")),
        "pod does not have \"kubernetes.io/config.mirror\" annotation, node \"one\" can only create mirror pods",
    );
    check(
        |pod| pod.set("spec.nodeName", "two"),
        "node \"one\" can only create pods with spec.nodeName set to itself",
    );
    check(
        |pod| drop(pod.remove_at("metadata.ownerReferences")),
        "node \"one\" can only create pods with an owner reference set to itself",
    );
    check(
        |pod| pod.items_at_mut("metadata.ownerReferences")[0].set("uid", "old"),
        "node one UID mismatch: expected old got uid-one",
    );
    check(
        |pod| pod.set("spec.volumes", json!([{"name": "v", "configMap": {}}])),
        "node \"one\" can not create pods that reference configmaps",
    );
    check(
        |pod| pod.set("spec.volumes", json!([{"name": "v", "csi": {"driver": "d"}}])),
        "node \"one\" can not create pods that reference csidrivers (via CSI volumes)",
    );
}

#[test]
fn a_node_changes_only_its_own_node_and_not_what_steers_pods() {
    let node = |labels: Value| json!({"metadata": {"name": "one", "labels": labels}});
    let old = node(json!({"kubernetes.io/arch": "x", "a": "b"}));
    let update = |now: Value| call(Operation::Update, "nodes", "", now, Some(&old));
    assert_eq!(
        update(node(json!({"kubernetes.io/arch": "y", "c": "d", "x.node.kubernetes.io/y": ""}))),
        Ok(())
    );
    assert_eq!(
        update(node(json!({"kubernetes.io/role": "", "a.node-restriction.kubernetes.io/x": ""})))
            .unwrap_err(),
        "nodes \"one\" is forbidden: is not allowed to modify labels: a.node-restriction.kubernetes.io/x, \
         kubernetes.io/role"
    );
    let mut tainted = old.clone();
    tainted.set("spec.taints", json!([{"key": "k"}]));
    assert_eq!(
        update(tainted).unwrap_err(),
        "nodes \"one\" is forbidden: node \"one\" is not allowed to modify taints"
    );
    let other = json!({"metadata": {"name": "two"}});
    assert_eq!(
        call(Operation::Update, "nodes", "", other.clone(), Some(&other)).unwrap_err(),
        "nodes \"two\" is forbidden: node \"one\" is not allowed to modify node \"two\""
    );
}

#[test]
fn a_node_updates_the_status_of_its_pods_only() {
    let pod = |node: &str, labels: Value| json!({"metadata": {"name": "p", "labels": labels}, "spec": {"nodeName": node}});
    let update = |now: Value, old: Value| call(Operation::Update, "pods", "status", now, Some(&old));
    let mine = || pod("one", json!({"a": "b"}));
    assert_eq!(update(mine(), mine()), Ok(()));
    let message = |result: Result<(), String>| {
        result.unwrap_err().trim_start_matches("pods \"p\" is forbidden: ").to_owned()
    };
    assert_eq!(
        message(update(pod("two", json!({})), pod("two", json!({})))),
        "node \"one\" can only update pod status for pods with spec.nodeName set to itself"
    );
    assert_eq!(
        message(update(pod("one", json!({})), mine())),
        "node \"one\" cannot update labels through pod status"
    );
}

#[test]
fn a_node_writes_the_size_and_the_conditions_of_claims() {
    let claim = json!({
        "metadata": {"name": "c", "namespace": "n", "resourceVersion": "1"},
        "spec": {"volumeName": "v"}, "status": {"phase": "Bound"},
    });
    let update = |change: &[(&str, Value)]| {
        let mut new = claim.clone();
        change.iter().for_each(|(path, value)| new.set(path, value.clone()));
        call(Operation::Update, "persistentvolumeclaims", "status", new, Some(&claim))
    };
    let own = [
        ("metadata.resourceVersion", json!("2")),
        ("status.capacity", json!({"storage": "1"})),
        ("status.conditions", json!([{"type": "x"}])),
    ];
    assert_eq!(update(&own), Ok(()));
    let refused =
        update(&[("metadata.labels", json!({"a": "b"})), ("status.phase", json!("Lost"))]).unwrap_err();
    let why = "node \"one\" is not allowed to update fields other than status.quantity and status.conditions: @@ -1,6 +1,9 @@\n {\n  \"name\": \"c\",\n  \"namespace\": \"n\",\n+ \"labels\": {\n+  \"a\": \"b\"\n+ },\n  \"Spec\": {\n";
    assert!(refused.contains(why), "{refused}");
    assert!(refused.ends_with("-  \"Phase\": \"Bound\",\n+  \"Phase\": \"Lost\",\n   \"AccessModes\": null,\n   \"Capacity\": null,\n   \"Conditions\": null,\n"), "{refused}");
}

#[test]
fn a_node_creates_and_deletes_its_own_slices() {
    let slice = |node: &str| json!({"metadata": {"name": "s"}, "spec": {"nodeName": node}});
    let create = |node: &str| call(Operation::Create, "resourceslices", "", slice(node), None);
    let delete = |node: &str| call(Operation::Delete, "resourceslices", "", Value::Null, Some(&slice(node)));
    assert_eq!((create("one"), delete("one")), (Ok(()), Ok(())));
    for (refused, verb) in [(create("two"), "create"), (create(""), "create"), (delete("two"), "delete")] {
        let why = format!("can only {verb} ResourceSlice with the same NodeName as the requesting node");
        assert!(refused.as_ref().is_err_and(|found| found.ends_with(&why)), "{refused:?}");
    }
}

#[test]
fn a_node_gets_tokens_for_its_pods_and_their_audiences() {
    let request = |pod: &str, audiences: &[&str]| {
        let bound = json!({"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": format!("uid-{pod}")});
        let body = json!({
            "metadata": {"name": "sa", "namespace": "n"},
            "spec": {"boundObjectRef": bound, "audiences": audiences},
        });
        let refused = call(Operation::Create, "serviceaccounts", "token", body, None);
        refused.map_err(|why| why.trim_start_matches("serviceaccounts \"sa\" is forbidden: ").to_owned())
    };
    assert_eq!(request("mine", &["vault"]), Ok(()));
    assert_eq!(
        request("theirs", &["vault"]).unwrap_err(),
        "node requested token bound to a pod scheduled on a different node"
    );
    assert_eq!(request("none", &["vault"]).unwrap_err(), "pod \"none\" not found");
    assert_eq!(request("mine", &["a", "b"]).unwrap_err(), "node may only request 0 or 1 audiences");
    assert_eq!(
        request("mine", &["elsewhere"]).unwrap_err(),
        "audience \"elsewhere\" not found in pod spec volume, system:node:one is not authorized to request tokens for \
         this audience"
    );
}

#[test]
fn other_users_are_not_restricted() {
    let plugin = NodeRestriction;
    let pod = json!({"metadata": {"name": "p", "namespace": "n"}});
    let objects = Objects::default();
    let user = UserInfo { name: NODE.to_owned(), ..UserInfo::default() };
    assert!(admit_as(user, &plugin, &objects, Operation::Create, "pods", "", pod.clone(), None).is_ok());
    let nobody = UserInfo {
        name: "system:node:".to_owned(),
        groups: vec!["system:nodes".to_owned()],
        ..UserInfo::default()
    };
    assert_eq!(
        admit_as(nobody, &plugin, &objects, Operation::Create, "pods", "", pod, None).unwrap_err(),
        "pods \"p\" is forbidden: could not determine node from user \"system:node:\""
    );
}

#[test]
fn a_node_may_request_any_certificate_with_its_gate_alone() {
    let create = || {
        let object = json!({
            "metadata": {"name": "c"},
            "spec": {"signerName": "kubernetes.io/kubelet-serving", "request": "eA=="},
        });
        call(Operation::Create, "certificatesigningrequests", "", object, None)
    };
    assert!(create().unwrap_err().contains("unable to parse csr"));
    let _gates = override_gates(
        &FeatureGates::default().with(Gate::AllowInsecureKubeletCertificateSigningRequests, true),
    );
    assert_eq!(create(), Ok(()));
}
