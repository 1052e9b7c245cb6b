//! The resources that policies are never asked about.

use pintle_machinery::GroupVersionResource;

const EXCLUDED: [(&str, &[&str]); 3] = [
    // A policy could prevent its own repair.
    (
        "admissionregistration.k8s.io",
        &[
            "mutatingadmissionpolicies",
            "mutatingadmissionpolicybindings",
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
        ],
    ),
    // The parts of a cluster ask who a user is, and what users may do.
    ("authentication.k8s.io", &["selfsubjectreviews", "tokenreviews"]),
    (
        "authorization.k8s.io",
        &[
            "localsubjectaccessreviews",
            "selfsubjectaccessreviews",
            "selfsubjectrulesreviews",
            "subjectaccessreviews",
        ],
    ),
];

/// Whether no policy is asked about this resource.
pub(super) fn is_excluded(resource: &GroupVersionResource) -> bool {
    EXCLUDED
        .iter()
        .any(|(group, resources)| resource.group == *group && resources.contains(&resource.resource.as_str()))
}
