//! The authorizer.

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

/// Decides by roles and bindings. It has none until [`Rbac::follow`] was called and [`Rbac::wait_synced`] has returned.
pub struct Rbac {
    index: ArcSwap<Index>,
    /// Held by who changes the index.
    changing: Mutex<()>,
    /// Set by [`Rbac::follow`].
    pub(crate) sources: OnceLock<Vec<Source>>,
}

/// A cache that is followed.
pub(crate) struct Source {
    /// Weak, since a cache knows the rules of its kind, which know this.
    pub(crate) cacher: Weak<Cacher>,
    /// Up to which revision the index has it; `None` until it has all that was there at the start.
    pub(crate) applied: watch::Receiver<Option<Revision>>,
}

/// A user with more bindings may have many of one role.
const FEW_BINDINGS: usize = 8;
/// How many roles are told that are not there.
const MAX_TOLD_MISSING: usize = 100;
/// How many texts (verbs, resources, names, …) are told when somebody asks for all of a user's rules.
const MAX_TOLD_TEXTS: usize = 200_000;

/// How long a question waits for the index to know the newest writes. It is asked without them then, as if it had come a
/// little earlier.
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
    /// Changes the index. Checks see all of the change or nothing.
    pub fn change(&self, change: impl FnOnce(&mut Index)) {
        let _one_at_a_time = self.changing.lock();
        let mut index = Index::clone(&self.index.load());
        change(&mut index);
        self.index.store(Arc::new(index));
    }

    /// The roles and bindings as they are now.
    pub fn index(&self) -> Arc<Index> {
        self.index.load_full()
    }

    fn sources(&self) -> &[Source] {
        self.sources.get().map(Vec::as_slice).unwrap_or_default()
    }

    /// Whether every role and binding that was there at the start is known.
    pub fn is_synced(&self) -> bool {
        self.sources().iter().all(|source| source.applied.borrow().is_some())
    }

    /// Waits until every role and binding that was there at the start is known.
    pub async fn wait_synced(&self) {
        for source in self.sources() {
            // Who has ended will tell nothing more.
            drop(source.applied.clone().wait_for(Option::is_some).await);
        }
    }

    /// Waits until what was created or changed before is known, as far as that does not take too long. What was deleted may
    /// still be known.
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

    /// Decides, at once.
    pub fn decide(&self, attributes: &Attributes<'_>) -> Verdict {
        let index = self.index.load();
        let mut missing: Vec<MissingRole> = Vec::new();
        let mut reason = None;
        let (mut visited, mut judged) = (0, HashSet::new());
        index.visit(attributes.user, attributes.namespace, |given| {
            visited += 1;
            match given {
                // Many bindings of one large role cost what the role costs.
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
    /// All rules that a user has in a namespace ("" for those of the whole cluster alone), binding by binding in the order of
    /// their names, and the roles that they should have and that are not there.
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
