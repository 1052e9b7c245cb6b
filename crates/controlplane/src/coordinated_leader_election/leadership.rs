//! The lease of the server that elects.

use super::lease::{leases, renewed};
use crate::{objects::write_options, system_namespaces::KUBE_SYSTEM};
use jiff::Timestamp;
use pintle_machinery::{Status, StatusReason, Value, ValueExt, json, meta::ObjectMeta};
use pintle_registry::Registry;
use std::time::{Duration, Instant};
use uuid::Uuid;

const NAME: &str = "leader-election-controller";

/// The times of the election of the server that elects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeadershipTimers {
    /// The time after which a server that does not renew its lease is replaced.
    pub lease_duration: Duration,
    /// How long the server that elects goes on when it cannot renew its lease.
    pub renew_deadline: Duration,
    /// The interval between renewals, and between steps of elections.
    pub retry_period: Duration,
}

impl Default for LeadershipTimers {
    fn default() -> LeadershipTimers {
        LeadershipTimers {
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

impl LeadershipTimers {
    /// Checks the order of the times.
    ///
    /// # Errors
    /// The reason why a server could not keep its lease with them.
    pub fn check(&self) -> Result<(), &'static str> {
        /// Renewals of several servers are spread over this many periods.
        const JITTER: f64 = 1.2;
        if self.lease_duration <= self.renew_deadline {
            return Err("leaseDuration must be greater than renewDeadline");
        }
        if self.renew_deadline <= self.retry_period.mul_f64(JITTER) {
            return Err("renewDeadline must be greater than retryPeriod*JitterFactor");
        }
        match self.retry_period.is_zero() {
            true => Err("retryPeriod must be greater than zero"),
            false => Ok(()),
        }
    }
}

/// This server's claim on the lease. The clocks of servers may differ: the lease of another server has expired when it
/// did not change for its duration, by this server's clock.
pub(super) struct Leadership {
    identity: String,
    timers: LeadershipTimers,
    /// The lease's version that was seen last, and when it was first seen.
    seen: Option<(String, Instant)>,
    /// When this server acquired or renewed the lease last, while it holds it.
    renewed_at: Option<Instant>,
}

impl Leadership {
    pub(super) fn new(hostname: &str, timers: LeadershipTimers) -> Leadership {
        let identity = format!("{hostname}_{}", Uuid::new_v4());
        Leadership { identity, timers, seen: None, renewed_at: None }
    }

    /// Whether this server elects, as of the last attempt.
    pub(super) fn is_held(&self) -> bool {
        self.renewed_at.is_some()
    }

    /// Acquires or renews the lease; returns whether this server holds it.
    pub(super) async fn hold(&mut self, registry: &dyn Registry, now: Timestamp) -> Result<bool, Status> {
        let held = self.try_hold(registry, now).await;
        match &held {
            Ok(true) => self.renewed_at = Some(Instant::now()),
            Ok(false) => self.renewed_at = None,
            Err(_) => {
                self.renewed_at = self.renewed_at.filter(|at| at.elapsed() < self.timers.renew_deadline)
            }
        }
        held.map_or_else(|error| if self.is_held() { Ok(true) } else { Err(error) }, Ok)
    }

    async fn try_hold(&mut self, registry: &dyn Registry, now: Timestamp) -> Result<bool, Status> {
        let resource = leases();
        let present = match registry.get(&resource, KUBE_SYSTEM, NAME).await {
            Err(status) if status.reason == StatusReason::NotFound => {
                let lease = json!({
                    "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                    "metadata": {"namespace": KUBE_SYSTEM, "name": NAME}, "spec": {},
                });
                let lease = self.taken(lease, now);
                return match registry.create(&resource, KUBE_SYSTEM, lease, write_options()).await {
                    Err(status) if status.reason == StatusReason::AlreadyExists => Ok(false),
                    result => result.map(|_| true),
                };
            }
            lease => lease?,
        };
        if !self.may_take(&present) {
            return Ok(false);
        }
        let version = present.resource_version();
        let change = |lease: Value| match lease.resource_version() == version {
            true => Ok(self.taken(lease, now)),
            false => Ok(lease),
        };
        let written =
            registry.update(&resource, KUBE_SYSTEM, NAME, Box::new(change), write_options()).await?;
        Ok(written.str_at("spec.holderIdentity") == self.identity)
    }

    /// Gives up the lease, so that another server need not wait.
    pub(super) async fn release(&mut self, registry: &dyn Registry, now: Timestamp) -> Result<(), Status> {
        if self.renewed_at.take().is_none() {
            return Ok(());
        }
        let identity = self.identity.as_str();
        let change = |mut lease: Value| {
            if lease.str_at("spec.holderIdentity") == identity {
                lease.set("spec.holderIdentity", "");
                lease.set("spec.leaseDurationSeconds", 1);
                lease.set("spec.renewTime", renewed(now));
            }
            Ok(lease)
        };
        registry.update(&leases(), KUBE_SYSTEM, NAME, Box::new(change), write_options()).await.map(drop)
    }

    fn may_take(&mut self, lease: &Value) -> bool {
        let holder = lease.str_at("spec.holderIdentity");
        if holder.is_empty() || holder == self.identity {
            return true;
        }
        let version = lease.resource_version();
        match &self.seen {
            Some((seen, since)) if seen == version => since.elapsed() > self.timers.lease_duration,
            _ => {
                self.seen = Some((version.to_owned(), Instant::now()));
                false
            }
        }
    }

    /// The lease with this server as its holder.
    fn taken(&self, mut lease: Value, now: Timestamp) -> Value {
        let time = renewed(now);
        if lease.str_at("spec.holderIdentity") != self.identity {
            let transitions =
                lease.i64_at("spec.leaseTransitions").map_or(0, |count| (count + 1).min(i64::from(i32::MAX)));
            lease.set("spec.holderIdentity", self.identity.as_str());
            lease.set("spec.acquireTime", time.as_str());
            lease.set("spec.leaseTransitions", transitions);
        }
        lease.set("spec.leaseDurationSeconds", self.timers.lease_duration.as_secs());
        lease.set("spec.renewTime", time);
        lease
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::GroupResource;
    use pintle_registry::{
        BoxFuture, DeleteOptions, WriteOptions,
        testing::{MemoryRegistry, now},
    };
    use std::{
        ops::ControlFlow,
        sync::atomic::{AtomicBool, Ordering},
    };

    #[test]
    fn times_are_in_order() {
        let check = |[lease_duration, renew_deadline, retry_period]: [u64; 3], is_right: bool| {
            let [lease_duration, renew_deadline, retry_period] =
                [lease_duration, renew_deadline, retry_period].map(Duration::from_secs);
            let timers = LeadershipTimers { lease_duration, renew_deadline, retry_period };
            assert_eq!(timers.check().is_ok(), is_right, "{timers:?}");
        };
        assert_eq!(LeadershipTimers::default().check(), Ok(()));
        check([10, 10, 2], false);
        check([15, 2, 2], false);
        check([15, 10, 0], false);
        check([3, 2, 1], true);
    }

    #[test]
    fn one_server_holds_the_lease_until_it_gives_it_up_or_is_gone() {
        let registry = MemoryRegistry::default();
        let time = Timestamp::UNIX_EPOCH;
        let timers =
            |lease_duration: Duration| LeadershipTimers { lease_duration, ..LeadershipTimers::default() };
        let mut one = Leadership::new("one", timers(Duration::from_secs(3600)));
        let mut other = Leadership::new("other", timers(Duration::from_secs(3600)));
        let mut impatient = Leadership::new("impatient", timers(Duration::ZERO));
        assert_eq!(now(one.hold(&registry, time)), Ok(true));
        assert_eq!(now(other.hold(&registry, time)), Ok(false));
        assert_eq!(now(one.hold(&registry, time)), Ok(true));
        now(one.release(&registry, time)).unwrap();
        assert_eq!(now(other.hold(&registry, time)), Ok(true));
        let lease = registry.stored(&leases(), KUBE_SYSTEM, NAME).unwrap();
        assert_eq!(lease.i64_at("spec.leaseTransitions"), Some(1));
        assert_eq!(now(impatient.hold(&registry, time)), Ok(false), "it sees the lease for the first time");
        assert_eq!(now(impatient.hold(&registry, time)), Ok(true), "the lease did not change in its time");
        assert_eq!(now(other.hold(&registry, time)), Ok(false));
    }

    /// A registry that can be out of reach.
    #[derive(Default)]
    struct Unreliable {
        registry: MemoryRegistry,
        is_away: AtomicBool,
    }

    impl Unreliable {
        fn reach(&self) -> Result<&MemoryRegistry, Status> {
            match self.is_away.load(Ordering::Relaxed) {
                true => Err(Status::internal_error("it is away")),
                false => Ok(&self.registry),
            }
        }
    }

    impl Registry for Unreliable {
        fn get<'a>(
            &'a self,
            resource: &'a GroupResource,
            namespace: &'a str,
            name: &'a str,
        ) -> BoxFuture<'a, Result<Value, Status>> {
            Box::pin(async move { self.reach()?.get(resource, namespace, name).await })
        }

        fn visit<'a>(
            &'a self,
            _: &'a GroupResource,
            _: &'a str,
            _: &'a mut (dyn FnMut(Value) -> ControlFlow<()> + Send),
        ) -> BoxFuture<'a, Result<(), Status>> {
            unreachable!("there is one lease")
        }

        fn create<'a>(
            &'a self,
            resource: &'a GroupResource,
            namespace: &'a str,
            object: Value,
            options: WriteOptions,
        ) -> BoxFuture<'a, Result<Value, Status>> {
            Box::pin(async move { self.reach()?.create(resource, namespace, object, options).await })
        }

        fn update<'a>(
            &'a self,
            resource: &'a GroupResource,
            namespace: &'a str,
            name: &'a str,
            change: Box<dyn FnMut(Value) -> Result<Value, Status> + Send + 'a>,
            options: WriteOptions,
        ) -> BoxFuture<'a, Result<Value, Status>> {
            Box::pin(async move { self.reach()?.update(resource, namespace, name, change, options).await })
        }

        fn apply<'a>(
            &'a self,
            _: &'a GroupResource,
            _: &'a str,
            _: &'a str,
            _: Value,
            _: WriteOptions,
        ) -> BoxFuture<'a, Result<Value, Status>> {
            unreachable!("the lease is not applied")
        }

        fn delete<'a>(
            &'a self,
            _: &'a GroupResource,
            _: &'a str,
            _: &'a str,
            _: DeleteOptions,
        ) -> BoxFuture<'a, Result<Value, Status>> {
            unreachable!("the lease is not deleted")
        }
    }

    #[test]
    fn a_lease_that_cannot_be_renewed_is_held_until_its_deadline_only() {
        let time = Timestamp::UNIX_EPOCH;
        let rows = [(Duration::from_secs(3600), true), (Duration::ZERO, false)];
        for (renew_deadline, goes_on) in rows {
            let registry = Unreliable::default();
            let timers = LeadershipTimers { renew_deadline, ..LeadershipTimers::default() };
            let mut one = Leadership::new("one", timers);
            registry.is_away.store(true, Ordering::Relaxed);
            assert!(now(one.hold(&registry, time)).is_err() && !one.is_held(), "it was never held");
            registry.is_away.store(false, Ordering::Relaxed);
            assert_eq!(now(one.hold(&registry, time)), Ok(true));
            registry.is_away.store(true, Ordering::Relaxed);
            for _ in 0..2 {
                let held = now(one.hold(&registry, time));
                assert_eq!(
                    (held.ok(), one.is_held()),
                    (goes_on.then_some(true), goes_on),
                    "{renew_deadline:?}"
                );
            }
            // What is not held is not given up, either.
            let released = now(one.release(&registry, time));
            assert_eq!(released.is_err(), goes_on, "{renew_deadline:?}");
            registry.is_away.store(false, Ordering::Relaxed);
            assert_eq!(now(one.hold(&registry, time)), Ok(true), "the lease is still its own");
        }
    }

    #[test]
    fn a_lease_that_another_server_takes_is_held_no_longer() {
        let registry = MemoryRegistry::default();
        let time = Timestamp::UNIX_EPOCH;
        let timers = LeadershipTimers { lease_duration: Duration::ZERO, ..LeadershipTimers::default() };
        let (mut one, mut other) = (Leadership::new("one", timers), Leadership::new("other", timers));
        assert_eq!(now(one.hold(&registry, time)), Ok(true));
        assert_eq!(now(other.hold(&registry, time)), Ok(false), "it sees the lease for the first time");
        assert_eq!(now(other.hold(&registry, time)), Ok(true));
        assert_eq!(now(one.hold(&registry, time)), Ok(false));
        assert!(!one.is_held() && other.is_held());
        // A server that lost the lease leaves the lease of the other one alone.
        now(one.release(&registry, time)).unwrap();
        let lease = registry.stored(&leases(), KUBE_SYSTEM, NAME).unwrap();
        assert_eq!(lease.str_at("spec.holderIdentity"), other.identity);
    }
}
