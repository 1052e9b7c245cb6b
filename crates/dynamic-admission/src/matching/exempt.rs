//! The objects that configured admission is never asked about.

use pintle_machinery::GroupVersionKind;

const KINDS: [&str; 6] = [
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
];

/// Whether objects of this kind configure admission. No webhook and no policy is asked about them, so that a broken one
/// can always be repaired.
pub fn is_exempt(kind: &GroupVersionKind) -> bool {
    kind.group == "admissionregistration.k8s.io" && KINDS.contains(&kind.kind.as_str())
}
