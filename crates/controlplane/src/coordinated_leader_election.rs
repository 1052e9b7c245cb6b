//! Coordinated leader election: elects, among the candidates for a lease, the one with the oldest emulation version
//! (<https://kubernetes.io/docs/concepts/cluster-administration/coordinated-leader-election/>).
//!
//! One server of a cluster elects at a time: the holder of a lease of its own ([`Leadership`]). The state of an election
//! is in the objects alone, so that another server can continue it.

mod election;
mod leadership;
mod lease;

pub use leadership::LeadershipTimers;

use crate::{
    controller::{Controller, log},
    objects::{unless_off, write_options},
};
use election::{Step, expired_candidates, next_step};
use jiff::Timestamp;
use leadership::Leadership;
use lease::{leases, renewed};
use pintle_machinery::{GroupResource, Status, StatusReason, Value, ValueExt, meta::ObjectMeta};
use pintle_registry::{DeleteOptions, Preconditions, Registry};
use std::{collections::BTreeMap, pin::pin, sync::Arc, time::Duration};
use tokio::{sync::Mutex, time::sleep};

fn candidates() -> GroupResource {
    GroupResource::new("coordination.k8s.io", "leasecandidates")
}

/// The interval between deletions of expired candidates.
const COLLECTION: Duration = Duration::from_secs(30 * 60);

/// Elects the holders of leases with candidates.
pub struct CoordinatedLeaderElection {
    timers: LeadershipTimers,
    leadership: Arc<Mutex<Leadership>>,
}

impl CoordinatedLeaderElection {
    /// The controller of a server on this host.
    pub fn new(hostname: &str, timers: LeadershipTimers) -> CoordinatedLeaderElection {
        let leadership = Leadership::new(hostname, timers);
        CoordinatedLeaderElection { timers, leadership: Arc::new(Mutex::new(leadership)) }
    }

    /// Elects once, if this server is the one that elects, and as long as it is.
    async fn elect(&self, registry: &dyn Registry) -> Result<(), Status> {
        if !self.hold(registry).await? {
            return Ok(());
        }
        let mut electing = pin!(elect(registry, Timestamp::now()));
        loop {
            tokio::select! {
                result = &mut electing => return result,
                () = sleep(self.timers.retry_period) => {}
            }
            if !self.hold(registry).await? {
                return Ok(());
            }
        }
    }

    async fn hold(&self, registry: &dyn Registry) -> Result<bool, Status> {
        self.leadership.lock().await.hold(registry, Timestamp::now()).await
    }
}

impl Controller for CoordinatedLeaderElection {
    const NAME: &'static str = "coordinated leader election";
    const INTERVAL: Duration = COLLECTION;

    async fn bootstrap(&self, _: &dyn Registry) -> Result<(), Status> {
        Ok(())
    }

    async fn reconcile(&self, registry: &dyn Registry) -> Result<(), Status> {
        // The lock is not held while objects are written.
        let is_held = self.leadership.lock().await.is_held();
        match is_held {
            true => collect_expired(registry, Timestamp::now()).await,
            false => Ok(()),
        }
    }

    async fn follow(&self, registry: &dyn Registry) {
        loop {
            log(Self::NAME, unless_off(self.elect(registry)).await);
            sleep(self.timers.retry_period).await;
        }
    }

    async fn withdraw(&self, registry: &dyn Registry) -> Result<(), Status> {
        self.leadership.lock().await.release(registry, Timestamp::now()).await
    }
}

/// Takes the next step of the election of each lease that has candidates.
async fn elect(registry: &dyn Registry, now: Timestamp) -> Result<(), Status> {
    let all = registry.list(&candidates(), "").await?;
    let mut leases: BTreeMap<(&str, &str), Vec<&Value>> = BTreeMap::new();
    for candidate in &all {
        let lease = (candidate.namespace(), candidate.str_at("spec.leaseName"));
        leases.entry(lease).or_default().push(candidate);
    }
    let mut result = Ok(());
    for ((namespace, name), of_lease) in leases {
        // One election does not prevent the others.
        result = elect_for(registry, namespace, name, &of_lease, now).await.and(result);
    }
    result
}

async fn elect_for(
    registry: &dyn Registry,
    namespace: &str,
    name: &str,
    of_lease: &[&Value],
    now: Timestamp,
) -> Result<(), Status> {
    let resource = leases();
    let lease = match registry.get(&resource, namespace, name).await {
        Err(status) if status.reason == StatusReason::NotFound => None,
        lease => Some(lease?),
    };
    match next_step(of_lease, lease.as_ref(), now) {
        Step::Wait => Ok(()),
        Step::Ping(silent) => {
            for candidate in silent {
                ping(registry, candidate, now).await?;
            }
            Ok(())
        }
        Step::Elect(elected) => match &lease {
            None => {
                let lease = elected.lease(namespace, name, now);
                match registry.create(&resource, namespace, lease, write_options()).await {
                    // The next step sees it.
                    Err(status) if status.reason == StatusReason::AlreadyExists => Ok(()),
                    result => result.map(drop),
                }
            }
            Some(_) => {
                let change = |lease: Value| Ok(elected.applied_to(lease, now));
                registry.update(&resource, namespace, name, Box::new(change), write_options()).await.map(drop)
            }
        },
    }
}

/// Asks a candidate whether it still stands.
async fn ping(registry: &dyn Registry, candidate: &Value, now: Timestamp) -> Result<(), Status> {
    let (namespace, name) = (candidate.namespace(), candidate.name());
    let seen = candidate.resource_version();
    let change = |mut current: Value| {
        // A candidate that has written meanwhile is looked at again in the next step.
        if current.resource_version() == seen {
            current.set("spec.pingTime", renewed(now));
        }
        Ok(current)
    };
    match registry.update(&candidates(), namespace, name, Box::new(change), write_options()).await {
        Err(status) if status.reason == StatusReason::NotFound => Ok(()),
        result => result.map(drop),
    }
}

/// Deletes the candidates that have not renewed for long.
async fn collect_expired(registry: &dyn Registry, now: Timestamp) -> Result<(), Status> {
    let all = unless_listed(registry.list(&candidates(), "").await)?;
    for candidate in expired_candidates(&all, now) {
        let options = DeleteOptions {
            preconditions: Preconditions::resource_version(candidate.resource_version()),
            ..DeleteOptions::default()
        };
        match registry.delete(&candidates(), candidate.namespace(), candidate.name(), options).await {
            Err(status) if matches!(status.reason, StatusReason::NotFound | StatusReason::Conflict) => {}
            result => drop(result?),
        }
    }
    Ok(())
}

/// The candidates, or none where they are not served.
fn unless_listed(list: Result<Vec<Value>, Status>) -> Result<Vec<Value>, Status> {
    match list {
        Err(status) if status == Status::no_such_resource() => Ok(Vec::new()),
        list => list,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::SignedDuration;
    use pintle_machinery::json;
    use pintle_registry::testing::{MemoryRegistry, now};

    fn at(seconds: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(100_000 + seconds)
    }

    fn stand(registry: &MemoryRegistry, name: &str, emulation: &str, renewed_at: i64) {
        let candidate = json!({
            "metadata": {"name": name, "namespace": "n", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {
                "leaseName": "l", "binaryVersion": "1.36.0", "emulationVersion": emulation,
                "strategy": "OldestEmulationVersion", "renewTime": renewed(at(renewed_at)),
            },
        });
        now(registry.create(&candidates(), "n", candidate, write_options())).unwrap();
    }

    fn answer(registry: &MemoryRegistry, name: &str, seconds: i64) {
        let change = |mut candidate: Value| {
            candidate.set("spec.renewTime", renewed(at(seconds)));
            Ok(candidate)
        };
        now(registry.update(&candidates(), "n", name, Box::new(change), write_options())).unwrap();
    }

    fn lease(registry: &MemoryRegistry) -> Option<Value> {
        registry.stored(&leases(), "n", "l")
    }

    #[test]
    fn the_oldest_emulation_version_is_elected_when_the_candidates_have_answered() {
        let registry = MemoryRegistry::default();
        stand(&registry, "new", "1.36.0", 0);
        stand(&registry, "old", "1.35.0", 0);
        // Neither has renewed lately: both are asked.
        now(elect(&registry, at(60))).unwrap();
        assert_eq!(lease(&registry), None);
        let asked = registry.stored(&candidates(), "n", "old").unwrap();
        assert_eq!(asked.str_at("spec.pingTime"), renewed(at(60)));
        now(elect(&registry, at(62))).unwrap();
        assert_eq!(lease(&registry), None, "they have five seconds");
        answer(&registry, "new", 63);
        answer(&registry, "old", 63);
        now(elect(&registry, at(64))).unwrap();
        let elected = lease(&registry).unwrap();
        assert_eq!(elected.str_at("spec.holderIdentity"), "old");
        assert_eq!(elected.str_at("spec.strategy"), "OldestEmulationVersion");
        let revision = registry.revision();
        now(elect(&registry, at(65))).unwrap();
        assert_eq!(registry.revision(), revision, "the holder is the best candidate");
    }

    #[test]
    fn a_better_candidate_is_preferred_and_an_expired_lease_changes_hands() {
        let registry = MemoryRegistry::default();
        stand(&registry, "new", "1.36.0", 0);
        now(elect(&registry, at(1))).unwrap();
        assert_eq!(lease(&registry).unwrap().str_at("spec.holderIdentity"), "new");
        stand(&registry, "old", "1.35.0", 2);
        now(elect(&registry, at(3))).unwrap();
        let preferred = lease(&registry).unwrap();
        assert_eq!(preferred.str_at("spec.holderIdentity"), "new");
        assert_eq!(preferred.str_at("spec.preferredHolder"), "old");
        answer(&registry, "old", 30);
        answer(&registry, "new", 30);
        now(elect(&registry, at(31))).unwrap();
        let changed = lease(&registry).unwrap();
        assert_eq!(changed.str_at("spec.holderIdentity"), "old");
        assert_eq!(changed.at("spec.preferredHolder"), None);
    }

    #[test]
    fn a_candidate_that_does_not_answer_is_passed_over_and_later_deleted() {
        let registry = MemoryRegistry::default();
        stand(&registry, "dead", "1.35.0", 0);
        stand(&registry, "alive", "1.36.0", 0);
        now(elect(&registry, at(60))).unwrap();
        answer(&registry, "alive", 61);
        now(elect(&registry, at(63))).unwrap();
        assert_eq!(lease(&registry), None);
        answer(&registry, "alive", 66);
        now(elect(&registry, at(67))).unwrap();
        assert_eq!(lease(&registry).unwrap().str_at("spec.holderIdentity"), "alive");
        now(collect_expired(&registry, at(1801))).unwrap();
        assert_eq!(registry.stored(&candidates(), "n", "dead"), None);
        assert!(registry.stored(&candidates(), "n", "alive").is_some());
    }
}
