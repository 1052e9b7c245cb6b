//! The traits and types of authorization.

mod forbidden;
mod resolved_rules;
mod selectors;

use crate::BoxFuture;
use pintle_machinery::UserInfo;
use std::{borrow::Cow, future::ready};

pub use forbidden::without_markup;
pub use resolved_rules::{NonResourceRule, ResolvedRules, ResourceRule};
pub use selectors::Selectors;

/// The attributes of a request that authorizers decide on.
#[derive(Clone, Copy)]
pub struct Attributes<'a> {
    /// The user.
    pub user: &'a UserInfo,
    /// The verb.
    pub verb: &'a str,
    /// The group.
    pub group: &'a str,
    /// The version, or "*".
    pub version: &'a str,
    /// The resource.
    pub resource: &'a str,
    /// The subresource, or "".
    pub subresource: &'a str,
    /// The namespace, or "".
    pub namespace: &'a str,
    /// The name, or "".
    pub name: &'a str,
    /// The path of a request that is not for a resource.
    pub path: &'a str,
    /// Whether the request is for a resource.
    pub is_resource_request: bool,
    /// The selectors of a list, watch or deletecollection request, if it has any.
    pub selectors: Option<&'a Selectors>,
}

impl<'a> Attributes<'a> {
    /// The attributes of a resource request with this user and verb; all others are empty.
    pub fn of(user: &'a UserInfo, verb: &'a str) -> Attributes<'a> {
        Attributes {
            user,
            verb,
            group: "",
            version: "",
            resource: "",
            subresource: "",
            namespace: "",
            name: "",
            path: "",
            is_resource_request: true,
            selectors: None,
        }
    }
}

/// The decision of an authorizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The request is allowed.
    Allow,
    /// The request is denied, whatever later authorizers would decide.
    Deny,
    /// Left to the next authorizer; the request is denied when no authorizer allows it.
    NoOpinion,
}

/// A decision with its reason and error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The decision.
    pub decision: Decision,
    /// The reason, for the denied user and for the audit log; may be empty.
    pub reason: Cow<'static, str>,
    /// The error of the evaluation, such as an unreachable webhook; may be empty. A request that is not allowed then
    /// gets an internal error instead of a 403.
    pub error: Cow<'static, str>,
}

impl Verdict {
    /// A decision without a reason.
    pub const fn new(decision: Decision) -> Verdict {
        Verdict { decision, reason: Cow::Borrowed(""), error: Cow::Borrowed("") }
    }

    /// Whether the request is allowed.
    pub fn is_allowed(&self) -> bool {
        self.decision == Decision::Allow
    }
}

/// Authorizes requests.
pub trait Authorizer: Send + Sync {
    /// Decides on a request.
    fn authorize<'a>(&'a self, attributes: &'a Attributes<'a>) -> BoxFuture<'a, Verdict>;

    /// The rules that a user has in a namespace. An authorizer that has no rules to enumerate returns none.
    fn rules_for<'a>(&'a self, _user: &'a UserInfo, _namespace: &'a str) -> BoxFuture<'a, ResolvedRules> {
        Box::pin(ready(ResolvedRules::default()))
    }
}

/// Allows every request: for the server's own parts.
#[derive(Debug, Clone, Copy, Default)]
pub struct AlwaysAllow;

impl Authorizer for AlwaysAllow {
    fn authorize<'a>(&'a self, _: &'a Attributes<'a>) -> BoxFuture<'a, Verdict> {
        Box::pin(ready(Verdict::new(Decision::Allow)))
    }

    fn rules_for<'a>(&'a self, _: &'a UserInfo, _: &'a str) -> BoxFuture<'a, ResolvedRules> {
        let all = || vec!["*".to_owned()];
        Box::pin(ready(ResolvedRules {
            resource_rules: vec![ResourceRule {
                verbs: all(),
                groups: all(),
                resources: all(),
                names: Vec::new(),
            }],
            non_resource_rules: vec![NonResourceRule { verbs: all(), urls: all() }],
            ..ResolvedRules::default()
        }))
    }
}
