//! Objects in memory, and an authenticator that uses them.

use bytes::Bytes;
use pintle_auth::{
    BoxFuture,
    authn::{Remarks, TokenAuthenticator},
};
use pintle_jwt::{SigningKey, public_keys_from_pem};
use pintle_machinery::{Status, Value};
use pintle_service_account::{
    Config, Found, ObjectGetter, ObjectKind, ServiceAccountTokens, TokenKeys, TokenMetrics,
};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

/// The signing key of these tests.
pub(crate) const KEY: &[u8] = include_bytes!("../../../jwt/tests/keys/p256-sec1.pem");
/// A second verifying key.
pub(crate) const OTHER_KEY: &[u8] = include_bytes!("../../../jwt/tests/keys/rsa-pkcs8.pem");

type Key = (String, String, String);

/// Objects, some of which the cache may not have yet.
#[derive(Default)]
pub(crate) struct Objects {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<Key, (u64, Value)>,
    not_cached: Vec<Key>,
    consistent_reads: usize,
    labels: Vec<(String, String)>,
}

fn key(kind: ObjectKind, namespace: &str, name: &str) -> Key {
    (kind.resource().resource, namespace.to_owned(), name.to_owned())
}

impl Objects {
    pub(crate) fn put(&self, kind: ObjectKind, namespace: &str, name: &str, object: Value) {
        let mut state = self.state.lock().unwrap();
        let revision = state.objects.values().map(|(revision, _)| *revision).max().unwrap_or_default() + 1;
        state.objects.insert(key(kind, namespace, name), (revision, object));
    }

    pub(crate) fn remove(&self, kind: ObjectKind, namespace: &str, name: &str) {
        self.state.lock().unwrap().objects.remove(&key(kind, namespace, name));
    }

    /// Hides an object from reads that are not consistent.
    pub(crate) fn hide_from_cache(&self, kind: ObjectKind, namespace: &str, name: &str) {
        self.state.lock().unwrap().not_cached.push(key(kind, namespace, name));
    }

    pub(crate) fn consistent_reads(&self) -> usize {
        self.state.lock().unwrap().consistent_reads
    }

    pub(crate) fn labels(&self) -> Vec<(String, String)> {
        self.state.lock().unwrap().labels.clone()
    }
}

impl ObjectGetter for Objects {
    fn find<'a>(
        &'a self,
        kind: ObjectKind,
        namespace: &'a str,
        name: &'a str,
        is_consistent: bool,
    ) -> BoxFuture<'a, Result<Option<Found>, Status>> {
        let mut state = self.state.lock().unwrap();
        let key = key(kind, namespace, name);
        state.consistent_reads += usize::from(is_consistent);
        let is_hidden = !is_consistent && state.not_cached.contains(&key);
        let found = state
            .objects
            .get(&key)
            .filter(|_| !is_hidden)
            .map(|(revision, object)| Found { revision: *revision, json: Bytes::from(object.to_string()) });
        Box::pin(std::future::ready(Ok(found)))
    }

    fn label_secret<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
        uid: &'a str,
        (label, value): (&'static str, String),
    ) -> BoxFuture<'a, ()> {
        let secret = format!("{namespace}/{name}/{uid}/{label}");
        self.state.lock().unwrap().labels.push((secret, value));
        Box::pin(std::future::ready(()))
    }
}

/// An authenticator, its objects and its metrics.
pub(crate) struct Judge {
    pub(crate) tokens: ServiceAccountTokens,
    pub(crate) objects: Arc<Objects>,
    pub(crate) metrics: Arc<TokenMetrics>,
    pub(crate) key: SigningKey,
}

/// The accepted issuer.
pub(crate) const ISSUER: &str = "https://me";

impl Judge {
    pub(crate) fn new(lookup: bool) -> Judge {
        let objects = Arc::new(Objects::default());
        let metrics = Arc::new(TokenMetrics::new().unwrap());
        let mut verifying = public_keys_from_pem(KEY).unwrap();
        verifying.extend(public_keys_from_pem(OTHER_KEY).unwrap());
        let tokens = ServiceAccountTokens::new(Config {
            issuers: vec![ISSUER.to_owned(), "https://before".to_owned()],
            keys: Arc::new(TokenKeys::new(verifying, None)),
            audiences: vec!["own".to_owned(), "also own".to_owned()],
            lookup,
            objects: objects.clone(),
            metrics: metrics.clone(),
        });
        Judge { tokens, objects, metrics, key: SigningKey::from_pem(KEY).unwrap() }
    }

    /// The user's name, or the error; "" for a token of another issuer.
    pub(crate) async fn judge(&self, token: &str) -> Result<String, String> {
        let found = self.tokens.authenticate_token(token, &[]).await;
        found
            .map(|found| found.map(|found| found.user.name.clone()).unwrap_or_default())
            .map_err(|error| error.reason)
    }

    /// The remarks about a token, valid or not.
    pub(crate) async fn remarks(&self, token: &str) -> Remarks {
        let found = self.tokens.authenticate_token(token, &[]).await;
        let remarks = found.map_or_else(|error| error.remarks, |found| found.unwrap().remarks);
        remarks.map(|remarks| (*remarks).clone()).unwrap_or_default()
    }

    pub(crate) fn sign(&self, claims: &Value) -> String {
        self.key.sign_token(claims.to_string().as_bytes()).unwrap()
    }

    /// The value of a counter.
    pub(crate) fn counted(&self, name: &str) -> u64 {
        let collectors = self.metrics.collectors();
        let families = collectors.iter().flat_map(|collector| collector.collect());
        let mut found = families.filter(|family| family.name() == format!("serviceaccount_{name}"));
        found.next().unwrap().get_metric()[0].get_counter().get_value() as u64
    }
}
