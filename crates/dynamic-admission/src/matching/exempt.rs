//! The objects about which only static manifests are asked.

use pintle_machinery::GroupVersionKind;

const KINDS: [&str; 6] = [
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
];

/// Whether objects of this kind configure admission. No webhook that an object configures is called for them, so that a
/// broken one can always be repaired.
pub fn is_exempt(kind: &GroupVersionKind) -> bool {
    kind.group == "admissionregistration.k8s.io" && KINDS.contains(&kind.kind.as_str())
}
