//! Parses the approval annotation that groups of the Kubernetes community require
//! (<https://github.com/kubernetes/enhancements/pull/1111>).

use pintle_go_forms::Url;
use pintle_go_forms::quote;

/// The annotation with the URL of the approval.
pub(crate) const ANNOTATION: &str = "api-approved.kubernetes.io";
const RULE: &str = "https://github.com/kubernetes/enhancements/pull/1111";

/// The meaning of the annotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApprovalState {
    /// The annotation is absent.
    Missing,
    /// The annotation is neither a URL nor a bypass reason.
    Invalid,
    /// The annotation is a URL.
    Approved,
    /// The annotation is a bypass reason.
    Bypassed,
}

/// Whether definitions in the group need approval.
pub(crate) fn is_protected_group(group: &str) -> bool {
    ["k8s.io", "kubernetes.io"].iter().any(|protected| {
        group.strip_suffix(protected).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    })
}

/// The state of the annotation (`""` if absent), and a message about it.
pub(crate) fn approval(annotation: &str) -> (ApprovalState, String) {
    let is_url = || {
        Url::parse_request_uri(annotation).is_ok_and(|url| !url.host().is_empty() && !url.scheme().is_empty())
    };
    if annotation.is_empty() {
        let reason = format!("protected groups must have approval annotation \"{ANNOTATION}\", see {RULE}");
        (ApprovalState::Missing, reason)
    } else if annotation.starts_with("unapproved") {
        (ApprovalState::Bypassed, format!("not approved: {}", quote(annotation)))
    } else if is_url() {
        (ApprovalState::Approved, format!("approved in {annotation}"))
    } else {
        let reason = format!(
            "protected groups must have approval annotation \"{ANNOTATION}\" with either a URL or a reason \
             starting with \"unapproved\", see {RULE}"
        );
        (ApprovalState::Invalid, reason)
    }
}
