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

/// The interval between renewals of the lease, a fraction of its duration; each renewal is a write.
const INTERVAL: Duration = Duration::from_secs(600);

/// Renews the lease of this server.
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
    const INTERVAL: Duration = INTERVAL;

    async fn reconcile(&self, registry: &dyn Registry) -> Result<(), Status> {
        renew(registry, self, Timestamp::now()).await
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
    const INTERVAL: Duration = INTERVAL;

    async fn bootstrap(&self, _: &dyn Registry) -> Result<(), Status> {
        Ok(())
    }

    async fn reconcile(&self, registry: &dyn Registry) -> Result<(), Status> {
        collect_expired(registry, Timestamp::now()).await
    }
}

/// Creates or renews the lease of this server.
async fn renew(registry: &dyn Registry, config: &IdentityLease, now: Timestamp) -> Result<(), Status> {
    let name = identity(&config.hostname);
    let holder = holder(&name);
    let time = now.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string();
    let mut object = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": name,
            "namespace": KUBE_SYSTEM,
            "labels": {COMPONENT_LABEL: COMPONENT, "kubernetes.io/hostname": config.hostname},
        },
        "spec": {
            "holderIdentity": holder,
            "leaseDurationSeconds": DURATION_SECONDS,
            "renewTime": time,
        },
    });
    let annotate = |lease: &mut Value| {
        if let Some(address) = &config.peer_address {
            let annotations = lease.object_at_mut("metadata.annotations");
            annotations.insert(PEER_ADDRESS_ANNOTATION, address.as_str().into());
        }
    };
    annotate(&mut object);
    create_or_change(registry, &leases(), KUBE_SYSTEM, object, |lease| {
        annotate(lease);
        lease.set("spec.holderIdentity", holder.as_str());
        lease.set("spec.leaseDurationSeconds", DURATION_SECONDS);
        lease.set("spec.renewTime", time.as_str());
    })
    .await
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
