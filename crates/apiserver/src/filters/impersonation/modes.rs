//! The impersonation modes, and the authorization checks that each of them makes
//! (<https://kep.k8s.io/5284>).
//!
//! A constrained mode checks whether the user may make this request while impersonating (`impersonate-on:MODE:VERB`),
//! then whether the user may impersonate each named user, group, UID and extra field (`impersonate:MODE`). The legacy
//! mode makes only the second check (`impersonate`), and allows every request afterwards.

use crate::metrics::Metrics;
use pintle_auth::authz::{Attributes, Authorizer};
use pintle_machinery::{
    FieldPath, Status, UserInfo,
    status::aggregate,
    user::{ANONYMOUS, AUTHENTICATED, SYSTEM_MASTERS, UNAUTHENTICATED},
    validation::{is_domain_prefixed_path, name_is_dns_label, name_is_dns_subdomain},
};
use std::{collections::BTreeMap, time::Instant};

/// An impersonation mode, in the order in which they are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// A service account impersonates the node that its pod runs on.
    AssociatedNode,
    /// Impersonates any node.
    ArbitraryNode,
    /// Impersonates a service account.
    ServiceAccount,
    /// Impersonates any other user.
    UserInfo,
    /// Impersonates any user, without constraint.
    Legacy,
}

/// From this many groups or extra values on, one check for all of them is tried before a check for each.
const MANY: usize = 4;
const AUTHENTICATION: &str = "authentication.k8s.io";
const NODE_PREFIX: &str = "system:node:";
const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";
const NODES: &str = "system:nodes";
/// The extra key in which a pod's token names its node.
const NODE_NAME_KEY: &str = "authentication.kubernetes.io/node-name";
const ASSOCIATED_NODE_KEYS: &str = "authentication.kubernetes.io/associated-node-keys";

impl Mode {
    pub(super) const ALL: [Mode; 5] =
        [Mode::AssociatedNode, Mode::ArbitraryNode, Mode::ServiceAccount, Mode::UserInfo, Mode::Legacy];

    /// The mode's name, as metrics have it.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Mode::AssociatedNode => "associated-node",
            Mode::ArbitraryNode => "arbitrary-node",
            Mode::ServiceAccount => "serviceaccount",
            Mode::UserInfo => "user-info",
            Mode::Legacy => "legacy",
        }
    }

    /// The verb that allowed the impersonation, for audit events; "" in the legacy mode.
    pub(super) fn constraint(self) -> &'static str {
        match self {
            Mode::Legacy => "",
            Mode::AssociatedNode | Mode::ArbitraryNode | Mode::ServiceAccount | Mode::UserInfo => self.verb(),
        }
    }

    /// The verb of the checks on the impersonated identity.
    fn verb(self) -> &'static str {
        match self {
            Mode::AssociatedNode => "impersonate:associated-node",
            Mode::ArbitraryNode => "impersonate:arbitrary-node",
            Mode::ServiceAccount => "impersonate:serviceaccount",
            Mode::UserInfo => "impersonate:user-info",
            Mode::Legacy => "impersonate",
        }
    }

    /// Whether the mode applies to this pair of users.
    fn applies(self, wanted: &UserInfo, requestor: &UserInfo) -> bool {
        let only_name = wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
        let node = node_of(&wanted.name);
        let is_account = service_account_of(&wanted.name).is_some();
        match self {
            Mode::AssociatedNode => only_name && node.is_some_and(|node| is_on(requestor, node)),
            Mode::ArbitraryNode => only_name && node.is_some(),
            Mode::ServiceAccount => only_name && is_account,
            Mode::UserInfo => node.is_none() && !is_account,
            Mode::Legacy => true,
        }
    }
}

/// One impersonation request.
pub(super) struct Attempt<'a> {
    pub(super) authorizer: &'a dyn Authorizer,
    pub(super) metrics: &'a Metrics,
    /// Whether there are other modes than the legacy one.
    pub(super) is_constrained: bool,
    pub(super) wanted: &'a UserInfo,
    /// The attributes of the request, with the original user.
    pub(super) asked: Attributes<'a>,
}

impl Attempt<'_> {
    /// The impersonated user in a mode, or the refusal; `None` when the mode does not apply to the two users.
    pub(super) async fn make(&self, mode: Mode) -> Option<Result<UserInfo, Status>> {
        if !mode.applies(self.wanted, self.asked.user) {
            return None;
        }
        let altered;
        let requestor = match mode {
            Mode::AssociatedNode => {
                // The node is known to be the account's own: the authorizer must not see which node it is.
                let keys = self.asked.user.extra.keys().cloned().collect();
                let extra = BTreeMap::from([(ASSOCIATED_NODE_KEYS.to_owned(), keys)]);
                altered = UserInfo { extra, ..self.asked.user.clone() };
                &altered
            }
            _ => self.asked.user,
        };
        Some(self.by(mode, requestor).await)
    }

    /// The impersonated user in the legacy mode, or the refusal.
    pub(super) async fn legacy(&self) -> Result<UserInfo, Status> {
        self.by(Mode::Legacy, self.asked.user).await
    }

    async fn by(&self, mode: Mode, requestor: &UserInfo) -> Result<UserInfo, Status> {
        if mode != Mode::Legacy {
            let verb = format!("impersonate-on:{}:{}", mode.as_str(), self.asked.verb);
            self.check(mode, &Attributes { user: requestor, verb: &verb, ..self.asked }).await?;
        }
        let about = Attributes { version: "v1", ..Attributes::of(requestor, mode.verb()) };
        let mut user = self.wanted.clone();
        user.groups = self.name(mode, &about).await?;
        let of_authentication = Attributes { group: AUTHENTICATION, ..about };
        if self.is_constrained {
            self.uid(mode, &of_authentication).await?;
        }
        self.groups(mode, &about).await?;
        self.extra(mode, &of_authentication).await?;
        if !self.is_constrained {
            self.uid(mode, &of_authentication).await?;
        }
        if user.name == ANONYMOUS {
            ensure_group(&mut user, UNAUTHENTICATED);
        } else if !user.is_member_of(UNAUTHENTICATED) {
            ensure_group(&mut user, AUTHENTICATED);
        }
        Ok(user)
    }

    /// Attributes in the mode's API group: users and groups are in the core group in the legacy mode.
    fn named<'b>(mode: Mode, about: &Attributes<'b>) -> Attributes<'b> {
        let group = if mode == Mode::Legacy { "" } else { AUTHENTICATION };
        Attributes { group, ..*about }
    }

    /// Checks the user name, and returns the groups of the impersonated user.
    async fn name(&self, mode: Mode, about: &Attributes<'_>) -> Result<Vec<String>, Status> {
        let wanted = self.wanted;
        let mut attributes =
            Attributes { resource: "users", name: &wanted.name, ..Attempt::named(mode, about) };
        let mut groups = wanted.groups.clone();
        if let (Some(node), true) = (node_of(&wanted.name), mode != Mode::Legacy) {
            (attributes.resource, attributes.name) = ("nodes", node);
            groups = vec![NODES.to_owned()];
        }
        if let Some((namespace, name)) = service_account_of(&wanted.name) {
            (attributes.resource, attributes.namespace, attributes.name) =
                ("serviceaccounts", namespace, name);
            if groups.is_empty() {
                groups =
                    vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
            }
        }
        if mode == Mode::AssociatedNode {
            attributes.name = "*";
        }
        self.check(mode, &attributes).await?;
        Ok(groups)
    }

    async fn uid(&self, mode: Mode, about: &Attributes<'_>) -> Result<(), Status> {
        match self.wanted.uid.as_str() {
            "" => Ok(()),
            uid => self.check(mode, &Attributes { resource: "uids", name: uid, ..*about }).await,
        }
    }

    async fn groups(&self, mode: Mode, about: &Attributes<'_>) -> Result<(), Status> {
        let groups = &self.wanted.groups;
        let attributes = Attributes { resource: "groups", ..Attempt::named(mode, about) };
        if mode != Mode::Legacy && !groups.is_empty() {
            if groups.iter().any(String::is_empty) {
                return Err(attributes.forbidden("impersonating the empty string group is not allowed"));
            }
            if groups.iter().any(|group| group == SYSTEM_MASTERS) {
                let attributes = Attributes { name: SYSTEM_MASTERS, ..attributes };
                return Err(attributes.forbidden("impersonating the system:masters group is not allowed"));
            }
            if groups.len() >= MANY && self.check(mode, &Attributes { name: "*", ..attributes }).await.is_ok()
            {
                return Ok(());
            }
        }
        for group in groups {
            self.check(mode, &Attributes { name: group, ..attributes }).await?;
        }
        Ok(())
    }

    async fn extra(&self, mode: Mode, about: &Attributes<'_>) -> Result<(), Status> {
        let extra = &self.wanted.extra;
        let attributes = Attributes { resource: "userextras", ..*about };
        if mode != Mode::Legacy && !extra.is_empty() {
            if let Some(wrong) = wrong_extra(extra) {
                return Err(attributes.forbidden(&wrong));
            }
            let all = Attributes { subresource: "*", name: "*", ..attributes };
            let is_many = extra.len() >= MANY || extra.values().map(Vec::len).sum::<usize>() >= MANY;
            if is_many && self.check(mode, &all).await.is_ok() {
                return Ok(());
            }
        }
        for (key, values) in extra {
            for value in values {
                self.check(mode, &Attributes { subresource: key, name: value, ..attributes }).await?;
            }
        }
        Ok(())
    }

    /// Makes one authorization check.
    async fn check(&self, mode: Mode, attributes: &Attributes<'_>) -> Result<(), Status> {
        let start = Instant::now();
        let verdict = self.authorizer.authorize(attributes).await;
        let is_allowed = verdict.is_allowed();
        if !self.is_constrained {
            // The error of the evaluation is not told, and refuses the request.
            return match is_allowed && verdict.error.is_empty() {
                true => Ok(()),
                false => Err(attributes.forbidden(&verdict.reason)),
            };
        }
        self.metrics.impersonation().authorized(mode.as_str(), is_allowed, start.elapsed());
        if is_allowed {
            return Ok(());
        }
        let why = match (verdict.error.is_empty(), verdict.reason.is_empty()) {
            (true, _) => verdict.reason.into_owned(),
            (false, true) => verdict.error.into_owned(),
            (false, false) => format!("{}: {}", verdict.error, verdict.reason),
        };
        Err(attributes.forbidden(&why))
    }
}

fn ensure_group(user: &mut UserInfo, group: &str) {
    if !user.is_member_of(group) {
        user.groups.push(group.to_owned());
    }
}

/// The first invalid extra field, for the constrained modes.
fn wrong_extra(extra: &BTreeMap<String, Vec<String>>) -> Option<String> {
    let path = FieldPath::new("extra").child("key");
    extra.iter().find_map(|(key, values)| {
        if key.is_empty() {
            return Some("impersonating the empty string key in extra is not allowed".to_owned());
        }
        let errors = is_domain_prefixed_path(&path, key);
        if !errors.is_empty() {
            let errors = aggregate(errors.iter().map(ToString::to_string));
            return Some(format!("impersonating an invalid key in extra is not allowed: {errors}"));
        }
        if *key != key.to_lowercase() {
            let key = pintle_go_forms::quote(key);
            return Some(format!("impersonating a non-lowercase key in extra is not allowed: {key}"));
        }
        let has_empty = values.iter().any(String::is_empty);
        has_empty.then(|| "impersonating the empty string value in extra is not allowed".to_owned())
    })
}

/// The node name in a node's user name.
fn node_of(user: &str) -> Option<&str> {
    user.strip_prefix(NODE_PREFIX).filter(|name| name_is_dns_subdomain(name, false).is_empty())
}

/// Namespace and name in a service account's user name.
fn service_account_of(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(SERVICE_ACCOUNT_PREFIX)?.split_once(':')?;
    let is_valid =
        name_is_dns_label(namespace, false).is_empty() && name_is_dns_subdomain(name, false).is_empty();
    is_valid.then_some((namespace, name))
}

/// Whether a user is a service account whose pod runs on this node.
fn is_on(user: &UserInfo, node: &str) -> bool {
    let own = user.extra.get(NODE_NAME_KEY).map(Vec::as_slice);
    service_account_of(&user.name).is_some() && matches!(own, Some([own]) if own == node)
}
