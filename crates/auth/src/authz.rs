//! What a user may do.

mod authorizer_chain;
mod privileged_groups;
mod resolved_rules;
mod selectors;

use crate::BoxFuture;
use pintle_machinery::UserInfo;
use std::{borrow::Cow, future::ready};

pub use authorizer_chain::AuthorizerChain;
pub use privileged_groups::PrivilegedGroups;
pub use resolved_rules::{NonResourceRule, ResolvedRules, ResourceRule};
pub use selectors::Selectors;

/// What is asked for.
#[derive(Clone, Copy)]
pub struct Attributes<'a> {
    /// Who asks.
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
    /// Whether it is for a resource.
    pub is_resource_request: bool,
    /// The selectors of a request to many objects, if it has any.
    pub selectors: Option<&'a Selectors>,
}

impl<'a> Attributes<'a> {
    /// A request for a resource of which nothing is said yet but who asks, and for what verb.
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

/// What an authorizer decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// They may.
    Allow,
    /// They may not, whatever others say.
    Deny,
    /// Others are to decide; when nobody does, they may not.
    NoOpinion,
}

/// A decision with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The decision.
    pub decision: Decision,
    /// Why, for who is refused and for the audit log; may be empty.
    pub reason: Cow<'static, str>,
    /// What went wrong while deciding, such as a webhook that does not answer; may be empty. Who is not allowed is told of
    /// it instead of being refused.
    pub error: Cow<'static, str>,
}

impl Verdict {
    /// A decision for no particular reason.
    pub const fn new(decision: Decision) -> Verdict {
        Verdict { decision, reason: Cow::Borrowed(""), error: Cow::Borrowed("") }
    }

    /// Whether they may.
    pub fn is_allowed(&self) -> bool {
        self.decision == Decision::Allow
    }
}

/// Says what users may do.
pub trait Authorizer: Send + Sync {
    /// Decides.
    fn authorize<'a>(&'a self, attributes: &'a Attributes<'a>) -> BoxFuture<'a, Verdict>;

    /// All that a user may do in a namespace, as far as this authorizer has rules that it can tell. One that has none
    /// says nothing.
    fn rules_for<'a>(&'a self, _user: &'a UserInfo, _namespace: &'a str) -> BoxFuture<'a, ResolvedRules> {
        Box::pin(ready(ResolvedRules::default()))
    }
}

/// Lets everybody do everything: what the server's own parts work with.
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
