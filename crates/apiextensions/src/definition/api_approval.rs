//! Groups of the Kubernetes community need its approval, which an annotation tells
//! (<https://github.com/kubernetes/enhancements/pull/1111>).

use super::go_url;
use pintle_machinery::text::quote;

/// The annotation with the URL of the approval.
pub(crate) const ANNOTATION: &str = "api-approved.kubernetes.io";
const RULE: &str = "https://github.com/kubernetes/enhancements/pull/1111";

/// What the annotation says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApprovalState {
    /// There is none.
    Missing,
    /// Neither a URL nor a reason to do without.
    Invalid,
    /// A URL.
    Approved,
    /// A reason to do without.
    Bypassed,
}

/// Whether definitions in the group need approval.
pub(crate) fn is_protected_group(group: &str) -> bool {
    ["k8s.io", "kubernetes.io"].iter().any(|protected| {
        group.strip_suffix(protected).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    })
}

/// What the annotation says, "" if there is none, and a sentence about it.
pub(crate) fn approval(annotation: &str) -> (ApprovalState, String) {
    let is_url = || {
        go_url::parse_request_uri(annotation).is_ok_and(|url| !url.host.is_empty() && !url.scheme.is_empty())
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
