//! Publishes the data with which extension servers authenticate forwarded requests
//! (<https://kubernetes.io/docs/tasks/extend-kubernetes/configure-aggregation-layer/#original-request-username-and-group>).

use crate::controller::{Controller, OBJECTS_INTERVAL};
use crate::objects::{core, create_or_change, unless_off};
use crate::system_namespaces::KUBE_SYSTEM;
use jiff::{SignedDuration, Timestamp};
use pintle_go_forms::PemBlocks;
use pintle_machinery::{Map, Status, Value, ValueExt, json};
use pintle_registry::Registry;
use std::{
    collections::{BTreeMap, HashSet},
    time::Duration,
};
use tokio::sync::watch;
use x509_parser::prelude::{FromDer as _, X509Certificate};

const AUTHENTICATION: &str = "extension-apiserver-authentication";

/// The data of the config map `extension-apiserver-authentication`, such as `client-ca-file`, with which extension
/// servers authenticate forwarded requests. It changes when the trust anchors are rotated.
#[derive(Debug, Clone)]
pub struct ClusterAuthentication(watch::Receiver<BTreeMap<String, String>>);

impl ClusterAuthentication {
    /// Creates it from a channel. Empty values are left out.
    pub fn new(data: watch::Receiver<BTreeMap<String, String>>) -> ClusterAuthentication {
        ClusterAuthentication(data)
    }

    /// Waits until the data has changed since the last call; pending for ever when the sender is gone.
    pub(crate) async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Default for ClusterAuthentication {
    /// No data.
    fn default() -> ClusterAuthentication {
        ClusterAuthentication::from([])
    }
}

impl<const N: usize> From<[(String, String); N]> for ClusterAuthentication {
    /// Data that never changes.
    fn from(data: [(String, String); N]) -> ClusterAuthentication {
        ClusterAuthentication(watch::Sender::new(data.into()).subscribe())
    }
}

/// Publishes the data, and each of its changes at once.
pub struct ClusterAuthenticationInfo {
    /// The data.
    pub data: ClusterAuthentication,
    /// Whether no other server uses the store.
    pub exclusive: bool,
}

impl Controller for ClusterAuthenticationInfo {
    const NAME: &'static str = "cluster authentication";
    const INTERVAL: Duration = OBJECTS_INTERVAL;

    async fn reconcile(&self, registry: &dyn Registry) -> Result<(), Status> {
        publish_authentication(registry, self).await
    }

    async fn follow(&self, registry: &dyn Registry) {
        let mut data = self.data.clone();
        loop {
            data.changed().await;
            if let Err(status) = unless_off(publish_authentication(registry, self)).await {
                // The periodic reconciliation tries again.
                tracing::warn!(error = %status, "the exchanged authorities could not be published");
            }
        }
    }
}

async fn publish_authentication(
    registry: &dyn Registry,
    config: &ClusterAuthenticationInfo,
) -> Result<(), Status> {
    let now = Timestamp::now();
    let data: Map = config
        .data
        .0
        .borrow()
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(key, value)| match value.contains(PEM_BEGIN) {
            // A file of trust anchors may hold other things, such as the authority's private key.
            true => (key.clone(), union_of_certificates("", value, now).into()),
            false => (key.clone(), value.clone().into()),
        })
        .collect();
    if data.is_empty() {
        return Ok(());
    }
    // Of a file whose certificates have all expired nothing is published.
    let published = data.iter().filter(|(_, value)| value.as_str() != Some(""));
    let published = published.map(|(key, value)| (key.clone(), value.clone())).collect();
    let object = config_map(AUTHENTICATION, &published);
    create_or_change(registry, &core("configmaps"), KUBE_SYSTEM, object, |config_map| {
        let present = config_map.object_at_mut("data");
        for (key, value) in &data {
            let own = value.as_str().unwrap_or_default();
            let merged = match present.get(key).and_then(Value::as_str) {
                // Other servers of the store may publish their own trust anchors in the same config map.
                Some(theirs) if !config.exclusive && (own.is_empty() || own.contains(PEM_BEGIN)) => {
                    union_of_certificates(theirs, own, now)
                }
                Some(theirs) if !config.exclusive && own.starts_with('[') => union_of_lists(theirs, own),
                _ => own.to_owned(),
            };
            match merged.is_empty() {
                true => drop(present.remove(key)),
                false => drop(present.insert(key.clone(), merged.into())),
            }
        }
    })
    .await
}

const PEM_BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const PEM_END: &str = "-----END CERTIFICATE-----";

/// How long an expired certificate is still published: clocks differ.
const LEEWAY: SignedDuration = SignedDuration::from_mins(5);

/// Merges the certificates of two bundles, without duplicates and expired ones, in order.
fn union_of_certificates(one: &str, two: &str, now: Timestamp) -> String {
    let mut known = HashSet::new();
    let mut union = String::new();
    for block in [one, two].iter().flat_map(|bundle| bundle.split_inclusive(PEM_END)) {
        let certificate = block.find(PEM_BEGIN).and_then(|start| block.get(start..));
        let Some(certificate) = certificate.filter(|certificate| certificate.ends_with(PEM_END)) else {
            continue;
        };
        let contents = PemBlocks::of(certificate).next().map(|block| block.contents);
        let is_expired = contents.as_deref().is_some_and(|der| is_expired(der, now));
        if !is_expired && known.insert(contents.unwrap_or_else(|| certificate.as_bytes().to_vec())) {
            union += certificate;
            union.push('\n');
        }
    }
    union
}

fn is_expired(der: &[u8], now: Timestamp) -> bool {
    let Ok((_, certificate)) = X509Certificate::from_der(der) else { return false };
    certificate.validity().not_after.timestamp() <= (now - LEEWAY).as_second()
}

/// Merges the items of two lists, without duplicates, in order. A malformed list counts as empty.
fn union_of_lists(one: &str, two: &str) -> String {
    let list = |text: &str| serde_json::from_str::<Vec<String>>(text).unwrap_or_default();
    let mut union = list(one);
    for item in list(two) {
        if !union.contains(&item) {
            union.push(item);
        }
    }
    json!(union).to_string()
}

fn config_map(name: &str, data: &Map) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": KUBE_SYSTEM},
        "data": data,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_registry::{
        WriteOptions,
        testing::{MemoryRegistry, now},
    };

    #[test]
    fn lists_of_other_servers_stay() {
        let check = |present: &str, own: &str, expected: &str| {
            assert_eq!(union_of_lists(present, own), expected);
        };
        check("[\"a\"]", "[\"b\",\"a\"]", "[\"a\",\"b\"]");
        check("no list", "[\"b\"]", "[\"b\"]");
        check("[]", "[]", "[]");
    }

    #[test]
    fn authorities_of_other_servers_stay() {
        let certificate = |text: &str| format!("{PEM_BEGIN}\n{text}\n{PEM_END}\n");
        let [one, two, three] = ["one", "two", "three"].map(certificate);
        let check = |present: &str, own: &str, expected: &str| {
            assert_eq!(union_of_certificates(present, own, Timestamp::UNIX_EPOCH), expected);
        };
        check(&one, &one, &one);
        check(&one, &two, &format!("{one}{two}"));
        check(&format!("{one}{two}"), &one, &format!("{one}{two}"));
        check(&format!("# by hand\n{one}{two}"), &format!("{two}{three}"), &format!("{one}{two}{three}"));
        check("no certificate", &one, &one);
        let key = "-----BEGIN PRIVATE KEY-----\nkey\n-----END PRIVATE KEY-----\n";
        check("", &format!("{key}{one}{key}{two}{key}"), &format!("{one}{two}"));
        check(&format!("{one}{PEM_BEGIN}\ncut off"), &two, &format!("{one}{two}"));
    }

    #[test]
    fn certificates_are_compared_by_their_contents_and_end_with_their_validity() {
        let mut params = rcgen::CertificateParams::default();
        params.not_after = rcgen::date_time_ymd(2026, 5, 1);
        let certificate = params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap().pem();
        let certificate = certificate.replace('\r', "");
        let other_lines = certificate.replacen("\nMII", "\nM\nII", 1);
        assert_ne!(certificate, other_lines);
        let end: Timestamp = "2026-05-01T00:05:00Z".parse().unwrap();
        let before = end - SignedDuration::from_secs(1);
        assert_eq!(union_of_certificates(&certificate, &other_lines, before), certificate);
        assert_eq!(union_of_certificates(&certificate, &certificate, end), "");
    }

    #[test]
    fn expired_authorities_of_one_server_take_none_of_another() {
        let certificate = |year: i32| {
            let mut params = rcgen::CertificateParams::default();
            params.not_after = rcgen::date_time_ymd(year, 1, 1);
            params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap().pem().replace('\r', "")
        };
        let (expired, valid) = (certificate(2000), certificate(4000));
        for (exclusive, theirs, expected) in
            [(false, &valid, Some(valid.as_str())), (true, &valid, None), (false, &expired, None)]
        {
            let registry = MemoryRegistry::default();
            let publish = |data: &str| {
                let data = [("client-ca-file".to_owned(), data.to_owned())].into();
                now(publish_authentication(&registry, &ClusterAuthenticationInfo { data, exclusive }))
                    .unwrap();
            };
            let mut data = Map::new();
            data.insert("client-ca-file".to_owned(), theirs.as_str().into());
            let object = config_map(AUTHENTICATION, &data);
            now(registry.create(&core("configmaps"), KUBE_SYSTEM, object, WriteOptions::default())).unwrap();
            publish(&expired);
            let stored = registry.stored(&core("configmaps"), KUBE_SYSTEM, AUTHENTICATION).unwrap();
            assert_eq!(stored["data"].get("client-ca-file").and_then(Value::as_str), expected);
        }
    }
}
