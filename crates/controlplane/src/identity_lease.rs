//! The identity lease, by which a running server is visible to others
//! (<https://kubernetes.io/docs/concepts/architecture/leases/#api-server-identity>).

use crate::controller::Controller;
use crate::objects::create_or_change;
use crate::system_namespaces::KUBE_SYSTEM;
use jiff::{SignedDuration, Timestamp};
use pintle_machinery::{
    GroupResource, Status, StatusReason, Value, ValueExt, json,
    meta::{ObjectMeta, parse_time},
};
use pintle_registry::{DeleteOptions, Preconditions, Registry};
use sha2::{Digest, Sha256};
use std::{sync::LazyLock, time::Duration};
use uuid::Uuid;

/// The value of [`COMPONENT_LABEL`] on the leases of servers.
pub const COMPONENT: &str = "kube-apiserver";
/// The label of the leases of servers.
pub const COMPONENT_LABEL: &str = "apiserver.kubernetes.io/identity";
const PEER_ADDRESS_ANNOTATION: &str = "kubernetes.io/peer-advertise-address";
const DURATION_SECONDS: i64 = 3600;

/// Distinguishes one run of the server from the next.
static INCARNATION: LazyLock<Uuid> = LazyLock::new(Uuid::new_v4);

fn leases() -> GroupResource {
    GroupResource::new("coordination.k8s.io", "leases")
}

/// The time between renewals of the lease, a fraction of its duration; each renewal is a write.
const RENEWAL: SignedDuration = SignedDuration::from_mins(10);

/// Renews the lease of this server, and restores what clients change in it.
pub struct IdentityLease {
    /// The host name, from which the server's identity is derived.
    pub hostname: String,
    /// Whether no other server uses the store.
    pub exclusive: bool,
    /// The address at which other servers reach this one, `host:port`; `None` when they do not forward requests to it.
    pub peer_address: Option<String>,
}

impl Controller for IdentityLease {
    const NAME: &'static str = "identity lease";
    /// Each look is a read of the cache.
    const INTERVAL: Duration = Duration::from_secs(10);

    async fn reconcile(&self, registry: &dyn Registry) -> Result<(), Status> {
        keep(registry, self, Timestamp::now()).await
    }

    async fn withdraw(&self, registry: &dyn Registry) -> Result<(), Status> {
        match self.exclusive {
            true => Ok(()),
            false => remove(registry, &self.hostname).await,
        }
    }
}

/// Deletes the expired leases of servers.
pub struct IdentityLeaseGarbageCollector;

impl Controller for IdentityLeaseGarbageCollector {
    const NAME: &'static str = "identity lease garbage collector";
    const INTERVAL: Duration = Duration::from_secs(600);

    async fn bootstrap(&self, _: &dyn Registry) -> Result<(), Status> {
        Ok(())
    }

    async fn reconcile(&self, registry: &dyn Registry) -> Result<(), Status> {
        collect_expired(registry, Timestamp::now()).await
    }
}

/// Renews the lease of this server, unless it was renewed lately and is unchanged since.
async fn keep(registry: &dyn Registry, config: &IdentityLease, now: Timestamp) -> Result<(), Status> {
    let name = identity(&config.hostname);
    match registry.get_cached(&leases(), KUBE_SYSTEM, &name).await {
        Ok(mut lease) => {
            let renewed = lease.str_at("spec.renewTime").to_owned();
            let is_fresh =
                parse_time(&renewed).is_some_and(|renewed| now.duration_since(renewed).abs() < RENEWAL);
            let given = lease.clone();
            claim(&mut lease, config, &renewed);
            if is_fresh && lease == given {
                return Ok(());
            }
        }
        Err(status) if status.reason == StatusReason::NotFound => {}
        Err(status) => return Err(status),
    }
    renew(registry, config, now).await
}

/// Creates or renews the lease of this server.
async fn renew(registry: &dyn Registry, config: &IdentityLease, now: Timestamp) -> Result<(), Status> {
    let time = now.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string();
    let mut object = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": identity(&config.hostname), "namespace": KUBE_SYSTEM},
    });
    claim(&mut object, config, &time);
    create_or_change(registry, &leases(), KUBE_SYSTEM, object, |lease| claim(lease, config, &time)).await
}

/// Makes a lease that of this server, renewed at a time.
fn claim(lease: &mut Value, config: &IdentityLease, time: &str) {
    let labels = lease.object_at_mut("metadata.labels");
    labels.insert(COMPONENT_LABEL, COMPONENT.into());
    labels.insert("kubernetes.io/hostname", config.hostname.as_str().into());
    if let Some(address) = &config.peer_address {
        let annotations = lease.object_at_mut("metadata.annotations");
        annotations.insert(PEER_ADDRESS_ANNOTATION, address.as_str().into());
    }
    lease.set("spec.holderIdentity", holder(&identity(&config.hostname)));
    lease.set("spec.leaseDurationSeconds", DURATION_SECONDS);
    lease.set("spec.renewTime", time);
}

/// Deletes the lease of this server, unless a later run holds it.
async fn remove(registry: &dyn Registry, hostname: &str) -> Result<(), Status> {
    let name = identity(hostname);
    let lease = match registry.get(&leases(), KUBE_SYSTEM, &name).await {
        Err(status) if status.reason == StatusReason::NotFound => return Ok(()),
        lease => lease?,
    };
    if lease.str_at("spec.holderIdentity") != holder(&name) {
        return Ok(());
    }
    delete(registry, &lease).await.map(drop)
}

/// Deletes expired leases of servers.
async fn collect_expired(registry: &dyn Registry, now: Timestamp) -> Result<(), Status> {
    for lease in registry.list(&leases(), KUBE_SYSTEM).await? {
        let is_ours = lease.label(COMPONENT_LABEL) == Some(COMPONENT);
        if is_ours && is_expired(&lease, now) && delete(registry, &lease).await? {
            tracing::info!(lease = lease.name(), "deleted the lease of a server that is gone");
        }
    }
    Ok(())
}

/// Deletes the lease if it is unchanged since it was read; returns whether it did. Another server may delete or renew
/// it first.
async fn delete(registry: &dyn Registry, lease: &Value) -> Result<bool, Status> {
    let options = DeleteOptions {
        preconditions: Preconditions::resource_version(lease.resource_version()),
        ..DeleteOptions::default()
    };
    match registry.delete(&leases(), KUBE_SYSTEM, lease.name(), options).await {
        Err(status) if matches!(status.reason, StatusReason::NotFound | StatusReason::Conflict) => Ok(false),
        result => result.map(|_| true),
    }
}

fn is_expired(lease: &Value, now: Timestamp) -> bool {
    let duration = SignedDuration::from_secs(lease.i64_at("spec.leaseDurationSeconds").unwrap_or_default());
    parse_time(lease.str_at("spec.renewTime")).is_none_or(|renewed| now.duration_since(renewed) > duration)
}

fn holder(name: &str) -> String {
    format!("{name}_{}", *INCARNATION)
}

/// The name of a server on this host: `apiserver-` and a hash of the host's and the component's name, each preceded by
/// its length.
pub fn identity(hostname: &str) -> String {
    let mut hash = Sha256::new();
    for text in [hostname, COMPONENT] {
        hash.update(u16::try_from(text.len()).unwrap_or(u16::MAX).to_be_bytes());
        hash.update(text);
    }
    let hash = hash.finalize();
    format!("apiserver-{}", base32(hash.get(..16).unwrap_or_default()))
}

/// Encodes base32 by RFC 4648, without padding, in lower case.
fn base32(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let bit = |index: usize| bytes.get(index / 8).map_or(0, |byte| byte >> (7 - index % 8) & 1);
    let groups = (0..bytes.len() * 8).step_by(5);
    let digits = groups
        .map(|start| (start..start + 5).fold(0usize, |digit, index| digit << 1 | usize::from(bit(index))));
    digits.filter_map(|digit| ALPHABET.get(digit)).map(|byte| char::from(*byte)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_registry::{
        WriteOptions,
        testing::{MemoryRegistry, now},
    };

    #[test]
    fn names_are_base32() {
        assert_eq!(base32(b"foobar"), "mzxw6ytboi");
        assert_eq!(base32(b"f"), "my");
        assert_eq!(identity("host").len(), "apiserver-".len() + 26);
        assert_ne!(identity("host"), identity("hos"));
    }

    #[test]
    fn the_lease_is_written_when_it_is_due_or_was_changed() {
        let registry = MemoryRegistry::default();
        let config = IdentityLease {
            hostname: "host".to_owned(),
            exclusive: false,
            peer_address: Some("10.0.0.1:6443".to_owned()),
        };
        let name = identity("host");
        let keep_at = |second: i64| {
            let revision = registry.revision();
            now(keep(&registry, &config, Timestamp::from_second(second).unwrap())).unwrap();
            registry.revision() != revision
        };
        let stored = || registry.stored(&leases(), KUBE_SYSTEM, &name).unwrap();
        assert!(keep_at(0));
        let first = stored();
        assert!(!keep_at(10) && !keep_at(599));
        for (path, value) in [
            ("metadata.labels", json!({})),
            ("metadata.annotations", json!({})),
            ("spec.holderIdentity", json!("other")),
            ("spec.leaseDurationSeconds", json!(1)),
            ("spec.renewTime", json!("2050-01-01T00:00:00.000000Z")),
        ] {
            let change = |mut lease: Value| {
                lease.set(path, value.clone());
                Ok(lease)
            };
            let options = WriteOptions::default();
            now(registry.update(&leases(), KUBE_SYSTEM, &name, Box::new(change), options)).unwrap();
            assert!(keep_at(0), "{path}");
            assert_eq!(
                (&stored()["metadata"]["labels"], &stored()["spec"]),
                (&first["metadata"]["labels"], &first["spec"])
            );
            assert_eq!(stored()["metadata"]["annotations"], first["metadata"]["annotations"]);
        }
        assert!(!keep_at(10));
        now(registry.delete(&leases(), KUBE_SYSTEM, &name, DeleteOptions::default())).unwrap();
        assert!(keep_at(10));
        assert!(keep_at(610));
    }

    #[test]
    fn leases_of_dead_servers_go() {
        let registry = MemoryRegistry::default();
        let put = |name: &str, component: &str, renewed: &str| {
            let lease = json!({
                "metadata": {"name": name, "labels": {COMPONENT_LABEL: component}},
                "spec": {"leaseDurationSeconds": 3600, "renewTime": renewed}
            });
            now(registry.create(&leases(), KUBE_SYSTEM, lease, WriteOptions::default())).unwrap();
        };
        put("old", COMPONENT, "2026-01-01T00:00:00.000000Z");
        put("live", COMPONENT, "2026-01-01T02:00:00.000000Z");
        put("other", "sample-apiserver", "2026-01-01T00:00:00.000000Z");
        now(collect_expired(&registry, "2026-01-01T02:30:00Z".parse().unwrap())).unwrap();
        let left = now(registry.list(&leases(), "")).unwrap();
        assert_eq!(left.iter().map(|lease| lease.name()).collect::<Vec<_>>(), ["live", "other"]);
    }
}
