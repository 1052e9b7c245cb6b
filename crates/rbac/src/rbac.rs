//! The RBAC authorizer.

use crate::{Index, MissingRole, PolicyRule, index::Given};
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use pintle_auth::{
    BoxFuture,
    authz::{Attributes, Authorizer, Decision, NonResourceRule, ResolvedRules, ResourceRule, Verdict},
};
use pintle_cacher::{Cacher, Freshness};
use pintle_machinery::{UserInfo, status::aggregate};
use pintle_storage::Revision;
use std::{
    collections::HashSet,
    fmt,
    future::ready,
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};
use tokio::sync::watch;

/// Authorizes by roles and bindings. It has none until [`Rbac::follow`] was called and [`Rbac::wait_synced`] has
/// returned.
pub struct Rbac {
    index: ArcSwap<Index>,
    /// Held while the index is changed.
    changing: Mutex<()>,
    /// Set by [`Rbac::follow`].
    pub(crate) sources: OnceLock<Vec<Source>>,
}

/// A watch cache that the index follows.
pub(crate) struct Source {
    /// Weak, to break a cycle: the cache holds the strategy of its kind, which holds the authorizer.
    pub(crate) cacher: Weak<Cacher>,
    /// The revision up to which the index is current; `None` until it has all objects that existed at the start.
    pub(crate) applied: watch::Receiver<Option<Revision>>,
}

/// With more bindings than this, roles are deduplicated, since a user may have many bindings of one role.
const FEW_BINDINGS: usize = 8;
/// The limit on reported missing roles.
const MAX_TOLD_MISSING: usize = 100;
/// The limit on the texts (verbs, resources, names, …) in the enumerated rules of a user.
const MAX_TOLD_TEXTS: usize = 200_000;

/// How long a check waits for the index to catch up with the latest writes. It then uses the index as it is, as if the
/// check had come a little earlier.
const PATIENCE: Duration = Duration::from_secs(3);

impl Default for Rbac {
    fn default() -> Rbac {
        Rbac { index: ArcSwap::default(), changing: Mutex::default(), sources: OnceLock::new() }
    }
}

impl fmt::Debug for Rbac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rbac").finish_non_exhaustive()
    }
}

impl Rbac {
    /// Changes the index atomically: checks see all of the change or nothing.
    pub fn change(&self, change: impl FnOnce(&mut Index)) {
        let _one_at_a_time = self.changing.lock();
        let mut index = Index::clone(&self.index.load());
        change(&mut index);
        self.index.store(Arc::new(index));
    }

    /// The current roles and bindings.
    pub fn index(&self) -> Arc<Index> {
        self.index.load_full()
    }

    fn sources(&self) -> &[Source] {
        self.sources.get().map(Vec::as_slice).unwrap_or_default()
    }

    /// Whether the index has every role and binding that existed at the start.
    pub fn is_synced(&self) -> bool {
        self.sources().iter().all(|source| source.applied.borrow().is_some())
    }

    /// Waits until the index has every role and binding that existed at the start.
    pub async fn wait_synced(&self) {
        for source in self.sources() {
            // An error means that the informer has ended.
            drop(source.applied.clone().wait_for(Option::is_some).await);
        }
    }

    /// Waits, for a bounded time, until the index has all earlier creates and updates. Earlier deletes may not be
    /// applied yet.
    pub async fn catch_up(&self) {
        let caught_up = async {
            for Source { cacher, applied } in self.sources() {
                let Some(cacher) = cacher.upgrade() else { continue };
                let Ok(snapshot) = cacher.snapshot(Freshness::Consistent).await else { continue };
                let newest = snapshot.range("", None).map(|object| object.revision()).max();
                drop(applied.clone().wait_for(|applied| *applied >= newest).await);
            }
        };
        if tokio::time::timeout(PATIENCE, caught_up).await.is_err() {
            tracing::warn!("the index of roles and bindings is behind");
        }
    }

    /// Decides on a request, without waiting.
    pub fn decide(&self, attributes: &Attributes<'_>) -> Verdict {
        let index = self.index.load();
        let mut missing: Vec<MissingRole> = Vec::new();
        let mut reason = None;
        let (mut visited, mut judged) = (0, HashSet::new());
        index.visit(attributes.user, attributes.namespace, |given| {
            visited += 1;
            match given {
                // Many bindings of one large role cost as much as the role once.
                Given::Rules(_, rules) if visited > FEW_BINDINGS && !judged.insert(rules.as_ptr()) => {}
                Given::Rules(binding, rules) if rules.iter().any(|rule| rule.allows(attributes)) => {
                    let subject = binding.subject_of(attributes.user);
                    reason = subject.map(|subject| format!("RBAC: allowed by {}", binding.describe(subject)));
                }
                Given::Rules(..) => {}
                Given::Nothing(role) if missing.len() < MAX_TOLD_MISSING => missing.push(role),
                Given::Nothing(_) => {}
            }
            reason.is_none()
        });
        match (reason, missing.is_empty()) {
            (Some(reason), _) => Verdict { reason: reason.into(), ..Verdict::new(Decision::Allow) },
            (None, true) => Verdict::new(Decision::NoOpinion),
            (None, false) => {
                let missing = aggregate(missing.iter().map(ToString::to_string));
                Verdict { reason: format!("RBAC: {missing}").into(), ..Verdict::new(Decision::NoOpinion) }
            }
        }
    }
}

impl Index {
    /// All rules of a user in a namespace ("" for the cluster-wide ones alone), in the order of the bindings' names,
    /// and the missing roles of the user's bindings.
    pub fn rules_of<'a>(
        &'a self,
        user: &UserInfo,
        namespace: &str,
    ) -> (Vec<&'a PolicyRule>, Vec<MissingRole>) {
        let (mut given, mut missing) = (Vec::new(), Vec::new());
        let mut known_missing = HashSet::new();
        self.visit(user, namespace, |one| {
            match one {
                Given::Rules(binding, rules) => given.push((binding, rules)),
                Given::Nothing(role) => {
                    if known_missing.insert(role.clone()) {
                        missing.push(role);
                    }
                }
            }
            true
        });
        given.sort_by_key(|(binding, _)| (&*binding.namespace, &*binding.name));
        given.dedup_by(|(one, _), (other, _)| std::ptr::eq(*one, *other));
        (given.into_iter().flat_map(|(_, rules)| rules).collect(), missing)
    }
}

impl Authorizer for Rbac {
    fn authorize<'a>(&'a self, attributes: &'a Attributes<'a>) -> BoxFuture<'a, Verdict> {
        Box::pin(ready(self.decide(attributes)))
    }

    fn rules_for<'a>(&'a self, user: &'a UserInfo, namespace: &'a str) -> BoxFuture<'a, ResolvedRules> {
        let index = self.index.load();
        let (rules, missing) = index.rules_of(user, namespace);
        let mut resolved = ResolvedRules {
            errors: missing.iter().map(ToString::to_string).collect(),
            ..ResolvedRules::default()
        };
        let mut texts = 0_usize;
        for rule in rules {
            texts += rule.texts();
            if texts > MAX_TOLD_TEXTS {
                resolved.errors.push("there are too many rules to tell all of them".to_owned());
                break;
            }
            let verbs = rule.verbs.clone();
            if !rule.resources.is_empty() {
                resolved.resource_rules.push(ResourceRule {
                    verbs: verbs.clone(),
                    groups: rule.api_groups.clone(),
                    resources: rule.resources.clone(),
                    names: rule.resource_names.clone(),
                });
            }
            if !rule.non_resource_urls.is_empty() {
                let urls = rule.non_resource_urls.clone();
                resolved.non_resource_rules.push(NonResourceRule { verbs, urls });
            }
        }
        Box::pin(ready(resolved))
    }
}

#[cfg(test)]
mod tests;
