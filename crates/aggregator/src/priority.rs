//! The order in which groups and versions are offered.

/// The priorities of a built-in group and version, as its automatic `APIService` has them: groups with the higher first
/// number come first, and within a group versions with the higher second.
pub fn group_priority(group: &str, version: &str) -> (i64, i64) {
    let group_priority = match group {
        "" | "apiregistration.k8s.io" => 18000,
        "apps" => 17800,
        "events.k8s.io" => 17750,
        "authentication.k8s.io" => 17700,
        "authorization.k8s.io" => 17600,
        "autoscaling" => 17500,
        "batch" => 17400,
        "certificates.k8s.io" => 17300,
        "networking.k8s.io" => 17200,
        "policy" => 17100,
        "rbac.authorization.k8s.io" => 17000,
        "storage.k8s.io" => 16800,
        "admissionregistration.k8s.io" | "apiextensions.k8s.io" => 16700,
        "scheduling.k8s.io" => 16600,
        "coordination.k8s.io" => 16500,
        "node.k8s.io" => 16300,
        "discovery.k8s.io" | "resource.k8s.io" => 16200,
        "flowcontrol.apiserver.k8s.io" => 16100,
        _ => 1000,
    };
    let version_priority = match (group, version) {
        ("autoscaling", "v2") => 30,
        ("resource.k8s.io" | "flowcontrol.apiserver.k8s.io", "v1") => 21,
        (_, "v1") => 15,
        ("resource.k8s.io", "v1beta2") => 15,
        ("admissionregistration.k8s.io", "v1beta1") => 12,
        ("admissionregistration.k8s.io", "v1alpha1") => 9,
        ("coordination.k8s.io", "v1beta1") => 13,
        ("coordination.k8s.io", "v1alpha2") => 12,
        (_, "v1beta1") => 9,
        _ => 1,
    };
    (group_priority, version_priority)
}
