//! The resources that policies are not asked about.

use pintle_machinery::GroupVersionResource;

/// The reviews: the parts of a cluster ask who a user is, and what users may do.
const REVIEWS: [(&str, &[&str]); 2] = [
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

const POLICIES: [(&str, &[&str]); 1] = [(
    "admissionregistration.k8s.io",
    &[
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
    ],
)];

/// Whether no policy is asked about this resource.
pub(super) fn is_review(resource: &GroupVersionResource) -> bool {
    is_of(&REVIEWS, resource)
}

/// Whether the objects of this resource are policies or bindings. Only policies of static manifests are asked about them:
/// one that is an object could prevent its own repair.
pub(super) fn is_policy(resource: &GroupVersionResource) -> bool {
    is_of(&POLICIES, resource)
}

fn is_of(groups: &[(&str, &[&str])], resource: &GroupVersionResource) -> bool {
    groups
        .iter()
        .any(|(group, resources)| resource.group == *group && resources.contains(&resource.resource.as_str()))
}
