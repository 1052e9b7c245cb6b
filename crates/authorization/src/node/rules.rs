//! The rules for every node: the part of the role `system:node` that does not depend on single objects
//! (<https://kubernetes.io/docs/reference/access-authn-authz/node/>).

use pintle_auth::authz::Attributes;
use pintle_feature_gates::{Gate, enabled};

/// Verbs, group, resources (with their subresources).
type Rule = (&'static [&'static str], &'static str, &'static [&'static str]);

const READ: &[&str] = &["get", "list", "watch"];

/// The rules. Resources that are authorized by object are decided before and not among them.
const RULES: &[Rule] = &[
    (&["create"], "authentication.k8s.io", &["tokenreviews"]),
    (&["create"], "authorization.k8s.io", &["subjectaccessreviews", "localsubjectaccessreviews"]),
    (READ, "", &["services"]),
    (&["create", "update", "patch"], "", &["events"]),
    (&["create", "update", "patch"], "events.k8s.io", &["events"]),
    (&["get"], "", &["endpoints"]),
    (&["create", "get", "list", "watch"], "certificates.k8s.io", &["certificatesigningrequests"]),
    (READ, "storage.k8s.io", &["csidrivers"]),
    (READ, "node.k8s.io", &["runtimeclasses"]),
];

/// The rules behind the gate `ClusterTrustBundle`.
const TRUST_BUNDLES: Rule = (READ, "certificates.k8s.io", &["clustertrustbundles"]);

/// Whether the rules allow a request.
pub(super) fn allow(attributes: &Attributes<'_>) -> bool {
    attributes.is_resource_request
        && attributes.subresource.is_empty()
        && (RULES.iter().any(|rule| covers(rule, attributes))
            || (covers(&TRUST_BUNDLES, attributes) && enabled(Gate::ClusterTrustBundle)))
}

fn covers((verbs, group, resources): &Rule, attributes: &Attributes<'_>) -> bool {
    *group == attributes.group && resources.contains(&attributes.resource) && verbs.contains(&attributes.verb)
}
