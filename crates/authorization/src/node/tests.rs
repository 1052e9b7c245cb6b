use super::*;
use crate::testing::now;
use pintle_auth::authz::Selectors;

fn user(name: &str) -> UserInfo {
    UserInfo { name: name.to_owned(), groups: vec![NODES.to_owned()], ..UserInfo::default() }
}

fn authorizer() -> Arc<NodeAuthorizer> {
    let metrics = crate::AuthorizationMetrics::new("me").unwrap();
    let authorizer = NodeAuthorizer::new(metrics.node().clone());
    let graph = &authorizer.graph;
    let references = [
        (Kind::Secret, "s"),
        (Kind::ConfigMap, "m"),
        (Kind::PersistentVolumeClaim, "c"),
        (Kind::ServiceAccount, "a"),
        (Kind::ResourceClaim, "r"),
    ];
    graph.set_pod("shop", "p", "n", references.into_iter());
    graph.set_volume("v", ("shop", "c"), &[("vault", "t")]);
    graph.set_of_node(graph::Owned::VolumeAttachment, "va", "n");
    graph.set_of_node(graph::Owned::ResourceSlice, "sl", "n");
    graph.set_of_node(graph::Owned::PodCertificateRequest, "shop/pcr", "n");
    authorizer
}

/// Rows of user, verb, `group/resource/subresource`, namespace, name, field selector, and the reason of a refusal.
#[test]
fn nodes_may_do_what_their_pods_need() {
    const YES: Option<&str> = None;
    const NO: Option<&str> = Some("");
    const UNRELATED: Option<&str> = Some("no relationship found between node 'n' and this object");
    type Row = (&'static str, &'static str, &'static str, &'static str, &'static str, Option<&'static str>);
    let rows: &[Row] = &[
        ("get", "/secrets", "shop", "s", "", YES),
        ("list", "/secrets", "shop", "s", "", YES),
        ("watch", "/secrets", "shop", "s", "", YES),
        ("get", "/secrets", "shop", "other", "", UNRELATED),
        ("get", "/secrets", "vault", "t", "", YES),
        ("list", "/secrets", "shop", "", "", Some("No Object name found")),
        ("list", "/secrets", "", "", "", Some("can only read namespaced object of this type")),
        ("update", "/secrets", "shop", "s", "", Some("can only read resources of this type")),
        ("get", "/secrets/x", "shop", "s", "", Some("cannot read subresource")),
        ("get", "/configmaps", "shop", "m", "", YES),
        ("get", "/configmaps", "shop", "s", "", UNRELATED),
        ("get", "/persistentvolumeclaims", "shop", "c", "", YES),
        (
            "list",
            "/persistentvolumeclaims",
            "shop",
            "c",
            "",
            Some("can only get individual resources of this type"),
        ),
        ("patch", "/persistentvolumeclaims/status", "shop", "c", "", YES),
        (
            "get",
            "/persistentvolumeclaims/status",
            "shop",
            "c",
            "",
            Some("can only get/update/patch this type"),
        ),
        ("get", "/persistentvolumes", "", "v", "", YES),
        ("get", "/persistentvolumes/status", "", "v", "", Some("cannot get subresource")),
        ("get", "resource.k8s.io/resourceclaims", "shop", "r", "", YES),
        ("get", "storage.k8s.io/volumeattachments", "", "va", "", YES),
        ("get", "/serviceaccounts", "shop", "a", "", YES),
        ("create", "/serviceaccounts/token", "shop", "a", "", YES),
        ("create", "/serviceaccounts/token", "shop", "b", "", UNRELATED),
        (
            "create",
            "/serviceaccounts",
            "shop",
            "a",
            "",
            Some("can only create token subresource of serviceaccount"),
        ),
        (
            "create",
            "/serviceaccounts/token",
            "shop",
            "",
            "",
            Some("can only create tokens for individual service accounts"),
        ),
        ("get", "coordination.k8s.io/leases", LEASE_NAMESPACE, "n", "", YES),
        ("create", "coordination.k8s.io/leases", LEASE_NAMESPACE, "", "", YES),
        (
            "get",
            "coordination.k8s.io/leases",
            LEASE_NAMESPACE,
            "o",
            "",
            Some("can only access node lease with the same name as the requesting node"),
        ),
        (
            "get",
            "coordination.k8s.io/leases",
            "shop",
            "n",
            "",
            Some("can only access leases in the \"kube-node-lease\" system namespace"),
        ),
        (
            "list",
            "coordination.k8s.io/leases",
            LEASE_NAMESPACE,
            "",
            "",
            Some("can only get, create, update, patch, or delete a node lease"),
        ),
        ("update", "storage.k8s.io/csinodes", "", "n", "", YES),
        (
            "update",
            "storage.k8s.io/csinodes",
            "",
            "o",
            "",
            Some("can only access CSINode with the same name as the requesting node"),
        ),
        (
            "list",
            "storage.k8s.io/csinodes",
            "",
            "",
            "",
            Some("can only get, create, update, patch, or delete a CSINode"),
        ),
        ("create", "resource.k8s.io/resourceslices", "", "", "", YES),
        ("delete", "resource.k8s.io/resourceslices", "", "sl", "", YES),
        ("delete", "resource.k8s.io/resourceslices", "", "other", "", UNRELATED),
        ("list", "resource.k8s.io/resourceslices", "", "", "spec.nodeName=n", YES),
        (
            "list",
            "resource.k8s.io/resourceslices",
            "",
            "",
            "spec.nodeName=o",
            Some("can only list/watch/deletecollection resourceslices with nodeName field selector"),
        ),
        ("get", "/nodes", "", "n", "", YES),
        ("create", "/nodes", "", "", "", YES),
        ("patch", "/nodes/status", "", "n", "", YES),
        ("get", "/nodes", "", "o", "", Some("node 'n' cannot read 'o', only its own Node object")),
        ("list", "/nodes", "", "", "", Some("node 'n' cannot read all nodes, only its own Node object")),
        ("delete", "/nodes", "", "n", "", NO),
        ("get", "/nodes/proxy", "", "n", "", NO),
        ("get", "/pods", "shop", "p", "", YES),
        ("get", "/pods", "shop", "q", "", UNRELATED),
        ("list", "/pods", "", "", "spec.nodeName=n", YES),
        (
            "list",
            "/pods",
            "",
            "",
            "spec.nodeName!=n",
            Some("can only list/watch pods with spec.nodeName field selector"),
        ),
        ("watch", "/pods", "shop", "p", "metadata.name=p", YES),
        ("list", "/pods", "", "", "", Some("can only list/watch pods with spec.nodeName field selector")),
        ("create", "/pods", "shop", "", "", YES),
        ("delete", "/pods", "shop", "q", "", YES),
        ("update", "/pods", "shop", "p", "", NO),
        ("patch", "/pods/status", "shop", "q", "", YES),
        ("create", "/pods/eviction", "shop", "q", "", YES),
        ("create", "/pods/binding", "shop", "q", "", NO),
        ("create", "authentication.k8s.io/tokenreviews", "", "", "", YES),
        ("list", "/services", "", "", "", YES),
        ("create", "/services", "shop", "", "", NO),
        ("get", "/services/status", "shop", "x", "", NO),
        ("watch", "node.k8s.io/runtimeclasses", "", "", "", YES),
        ("create", "certificates.k8s.io/podcertificaterequests", "shop", "", "", NO),
        ("list", "certificates.k8s.io/clustertrustbundles", "", "", "", NO),
        ("get", "apps/deployments", "shop", "x", "", NO),
    ];
    let authorizer = authorizer();
    let node = user("system:node:n");
    for (verb, what, namespace, name, selector, expected) in rows {
        let mut parts = what.split('/');
        let mut part = || parts.next().unwrap_or_default();
        let selectors = Selectors::parse(selector, "");
        let attributes = Attributes {
            group: part(),
            resource: part(),
            subresource: part(),
            namespace,
            name,
            selectors: Some(&selectors),
            ..Attributes::of(&node, verb)
        };
        let verdict = now(authorizer.authorize(&attributes));
        let refused = (!verdict.is_allowed()).then_some(&*verdict.reason);
        assert_eq!(refused, *expected, "{verb} {what} {namespace}/{name} {selector}");
        assert_ne!(verdict.decision, Decision::Deny, "others may still allow it");
    }
}

#[test]
fn others_are_left_to_others() {
    let authorizer = authorizer();
    let check = |user: &UserInfo, reason: &str| {
        let attributes = Attributes { resource: "nodes", name: "n", ..Attributes::of(user, "get") };
        let verdict = now(authorizer.authorize(&attributes));
        assert_eq!((verdict.decision, &*verdict.reason), (Decision::NoOpinion, reason), "{}", user.name);
    };
    check(&user("jane"), "");
    check(&UserInfo { name: "system:node:n".to_owned(), ..UserInfo::default() }, "");
    check(&user("system:node:"), "unknown node for user \"system:node:\"");
    assert!(now(authorizer.rules_for(&user("system:node:n"), "shop")).incomplete);
    assert!(!now(authorizer.rules_for(&user("jane"), "shop")).incomplete);
}

/// Behind the gate `PodCertificateRequest`, which is closed in other tests of the process.
#[test]
fn nodes_request_certificates_for_their_pods() {
    let authorizer = authorizer();
    let node = user("system:node:n");
    let check = |verb: &str, subresource: &str, name: &str, selector: &str, refusal: Option<&str>| {
        let selectors = Selectors::parse(selector, "");
        let attributes = Attributes {
            group: "certificates.k8s.io",
            resource: "podcertificaterequests",
            subresource,
            namespace: "shop",
            name,
            selectors: Some(&selectors),
            ..Attributes::of(&node, verb)
        };
        let asked = Asked { authorizer: &authorizer, node: "n", attributes: &attributes };
        let opinion = asked.pod_certificate_request().err();
        assert_eq!(opinion.as_deref(), refusal, "{verb} {subresource} {name} {selector}");
    };
    check("create", "", "", "", None);
    check("get", "", "pcr", "", None);
    check("get", "", "other", "", Some("no relationship found between node 'n' and this object"));
    check("watch", "", "", "spec.nodeName=n", None);
    let selector = "can only list/watch podcertificaterequests with nodeName field selector";
    check("list", "", "", "spec.nodeName=o", Some(selector));
    check("delete", "", "pcr", "", Some("nodes may not delete podcertificaterequests"));
    let status = "nodes may not access the status subresource of PodCertificateRequests";
    check("update", "status", "pcr", "", Some(status));
}
