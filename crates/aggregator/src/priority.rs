//! The priorities by which discovery orders groups and versions.

/// A group, its priority, and its versions with theirs.
type Group = (&'static str, i64, &'static [(&'static str, i64)]);

/// The group priority and the version priority of each built-in group and version, the same as in its automatic
/// `APIService`. Groups with a higher first number come first, and within a group versions with a higher second number.
const BUILT_IN: [Group; 22] = [
    ("", 18000, &[("v1", 1)]),
    ("apps", 17800, &[("v1", 15)]),
    ("events.k8s.io", 17750, &[("v1", 15), ("v1beta1", 5)]),
    ("authentication.k8s.io", 17700, &[("v1", 15), ("v1beta1", 9), ("v1alpha1", 1)]),
    ("authorization.k8s.io", 17600, &[("v1", 15)]),
    ("autoscaling", 17500, &[("v2", 30), ("v1", 15), ("v2beta1", 9), ("v2beta2", 1)]),
    ("batch", 17400, &[("v1", 15), ("v1beta1", 9), ("v2alpha1", 9)]),
    ("certificates.k8s.io", 17300, &[("v1", 15), ("v1beta1", 9), ("v1alpha1", 1)]),
    ("networking.k8s.io", 17200, &[("v1", 15), ("v1beta1", 9)]),
    ("policy", 17100, &[("v1", 15), ("v1beta1", 9)]),
    ("rbac.authorization.k8s.io", 17000, &[("v1", 15)]),
    ("storage.k8s.io", 16800, &[("v1", 15), ("v1beta1", 9), ("v1alpha1", 1)]),
    ("admissionregistration.k8s.io", 16700, &[("v1", 15), ("v1beta1", 12), ("v1alpha1", 9)]),
    ("apiextensions.k8s.io", 16700, &[("v1", 15)]),
    ("scheduling.k8s.io", 16600, &[("v1", 15), ("v1alpha2", 2)]),
    ("coordination.k8s.io", 16500, &[("v1", 15), ("v1beta1", 13), ("v1alpha2", 12)]),
    ("node.k8s.io", 16300, &[("v1", 15), ("v1beta1", 9), ("v1alpha1", 1)]),
    ("discovery.k8s.io", 16200, &[("v1", 15), ("v1beta1", 12)]),
    ("resource.k8s.io", 16200, &[("v1", 21), ("v1beta2", 15), ("v1beta1", 9), ("v1alpha3", 1)]),
    ("flowcontrol.apiserver.k8s.io", 16100, &[("v1", 21), ("v1beta3", 18), ("v1beta2", 15), ("v1beta1", 12)]),
    ("internal.apiserver.k8s.io", 16000, &[("v1alpha1", 9)]),
    ("storagemigration.k8s.io", 15800, &[("v1beta1", 9)]),
];

/// The priorities of groups and versions of custom resources.
pub(crate) const CUSTOM: (i64, i64) = (1000, 100);

/// The priorities of a built-in group and version; `None` for others, which get no automatic `APIService`.
pub(crate) fn built_in_priority(group: &str, version: &str) -> Option<(i64, i64)> {
    let (_, group_priority, versions) = BUILT_IN.iter().find(|(name, ..)| *name == group)?;
    let (_, version_priority) = versions.iter().find(|(name, _)| *name == version)?;
    Some((*group_priority, *version_priority))
}

/// The priorities by which discovery orders groups and versions.
pub fn group_priority(group: &str, version: &str) -> (i64, i64) {
    // The aggregator's own group has no `APIService` and comes first: an API service has at most 20000.
    let own = (group == "apiregistration.k8s.io").then_some((20001, 0));
    own.or_else(|| built_in_priority(group, version)).unwrap_or(CUSTOM)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_ordered_as_in_kube_apiserver() {
        // Group, version, priorities in discovery, priorities of the automatic `APIService`.
        let rows = [
            ("", "v1", (18000, 1), Some((18000, 1))),
            ("apps", "v1", (17800, 15), Some((17800, 15))),
            ("autoscaling", "v2", (17500, 30), Some((17500, 30))),
            ("autoscaling", "v1", (17500, 15), Some((17500, 15))),
            ("internal.apiserver.k8s.io", "v1alpha1", (16000, 9), Some((16000, 9))),
            ("storagemigration.k8s.io", "v1beta1", (15800, 9), Some((15800, 9))),
            ("apiregistration.k8s.io", "v1", (20001, 0), None),
            ("example.com", "v1", CUSTOM, None),
            // A version that this server does not know comes last, even in a built-in group.
            ("apps", "v9", CUSTOM, None),
        ];
        for (group, version, discovery, automatic) in rows {
            assert_eq!(group_priority(group, version), discovery, "{group}/{version}");
            assert_eq!(built_in_priority(group, version), automatic, "{group}/{version}");
        }
    }

    #[test]
    fn groups_and_versions_are_listed_once() {
        for (index, (group, _, versions)) in BUILT_IN.iter().enumerate() {
            assert!(BUILT_IN.iter().skip(index + 1).all(|(other, ..)| other != group), "{group}");
            for (index, (version, _)) in versions.iter().enumerate() {
                assert!(
                    versions.iter().skip(index + 1).all(|(other, _)| other != version),
                    "{group}/{version}"
                );
            }
        }
    }
}
