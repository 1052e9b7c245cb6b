//! Tests of KMS plugins: one on a socket, and one in memory for tests with paused time.

use super::{
    KmsService, KmsTransformer, Probe,
    messages::{DecryptRequest, EncryptResponse, StatusResponse},
    object::{AES_GCM_KEY, EncryptedObject, HKDF_SHA256_XNONCE_AES_GCM_SEED},
};
use crate::{
    EncryptionMetrics,
    tests::{
        Fixture,
        known_answers::{KEY, KMS_KEY, KMS_SEED, PLAIN, bytes},
        metric,
    },
};
use parking_lot::Mutex;
use pintle_config_metrics::content_hash;
use pintle_kms_plugin::KmsPlugin;
use pintle_plugin_socket::{Code, Status};
use pintle_storage::BoxFuture;
use proptest::prelude::*;
use prost::Message;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tempfile::TempDir;
use zeroize::Zeroizing;

struct Socket {
    path: PathBuf,
    _dir: TempDir,
}

fn socket() -> Socket {
    let dir = tempfile::tempdir().unwrap();
    Socket { path: dir.path().join("kms.sock"), _dir: dir }
}

fn rules(socket: &Path, timeout: &str) -> String {
    format!(
        "- resources: [secrets]\n  providers:\n  - kms: {{apiVersion: v2, name: plugin, timeout: {timeout}, endpoint: 'unix://{}'}}\n  - identity: {{}}\n",
        socket.display()
    )
}

#[tokio::test]
async fn values_come_back_and_the_service_is_asked_once() {
    let socket = socket();
    let plugin = KmsPlugin::start(&socket.path).unwrap();
    plugin.state().annotations.insert("version.plugin.example.com".to_owned(), b"1".to_vec());
    let fixture = Fixture::load(&rules(&socket.path, "3s")).await;
    assert!(fixture.encryption.has_health_check());
    assert_eq!(fixture.encryption.health(), Ok(()));
    let mut stored = Vec::new();
    for _ in 0..3 {
        stored.push(fixture.seal("secrets", "/k", b"value").await.unwrap());
    }
    for stored in &stored {
        assert!(stored.starts_with(b"k8s:enc:kms:v2:plugin:"));
        let opened = fixture.open("secrets", "/k", stored).await.unwrap();
        assert_eq!((opened.value.as_ref(), opened.stale), (b"value".as_slice(), false));
        let moved = fixture.open("secrets", "/other", stored).await.unwrap_err();
        assert_eq!(moved.0, "cipher: message authentication failed");
    }
    let calls = |plugin: &KmsPlugin| {
        let state = plugin.state();
        (state.statuses, state.encryptions, state.decryptions)
    };
    assert_eq!(calls(&plugin), (1, 1, 0));

    // After a restart the plugin decrypts the data key, once.
    let restarted = Fixture::load(&rules(&socket.path, "3s")).await;
    for stored in &stored {
        let opened = restarted.open("secrets", "/k", stored).await.unwrap();
        assert_eq!((opened.value.as_ref(), opened.stale), (b"value".as_slice(), false));
    }
    assert_eq!(calls(&plugin), (2, 2, 1));
    let missed = "apiserver_storage_envelope_transformation_cache_misses_total";
    assert_eq!((fixture.metric(missed, &[]), restarted.metric(missed, &[])), (0.0, 1.0));
    let used = "apiserver_envelope_encryption_key_id_hash_total";
    let hash = content_hash(b"key-1");
    assert_eq!(fixture.metric(used, &["to_storage", "plugin", &hash]), 3.0);
    assert_eq!(restarted.metric(used, &["from_storage", "plugin", &hash]), 3.0);
    // A key that encrypted nothing yet has no time of its last use, which would be 1970.
    let last = "apiserver_envelope_encryption_key_id_hash_last_timestamp_seconds";
    assert_eq!(restarted.series(last), 1);
    assert_ne!(restarted.metric(last, &["from_storage", "plugin", &hash]), 0.0);
}

#[tokio::test]
async fn values_of_other_implementations_are_read() {
    let socket = socket();
    let plugin = KmsPlugin::start(&socket.path).unwrap();
    plugin.state().key_id = "key-7".to_owned();
    let fixture = Fixture::load(&rules(&socket.path, "3s")).await;
    // The older form of a data key is readable, and stale.
    let opened = fixture.open("secrets", KEY, &bytes(KMS_KEY)).await.unwrap();
    assert_eq!((opened.value.as_ref(), opened.stale), (PLAIN, true));
    plugin.state().annotations.insert("version.plugin.example.com".to_owned(), b"1".to_vec());
    let opened = fixture.open("secrets", KEY, &bytes(KMS_SEED)).await.unwrap();
    assert_eq!((opened.value.as_ref(), opened.stale), (PLAIN, false));
}

#[tokio::test]
async fn what_the_service_cannot_decrypt_fails_alone() {
    let socket = socket();
    let plugin = KmsPlugin::start(&socket.path).unwrap();
    let fixture = Fixture::load(&rules(&socket.path, "3s")).await;
    let old = fixture.seal("secrets", "/k", b"old").await.unwrap();
    plugin.state().key_id = "key-2".to_owned();
    plugin.state().forgotten = vec!["key-1".to_owned()];
    let fixture = Fixture::load(&rules(&socket.path, "3s")).await;
    let new = fixture.seal("secrets", "/k", b"new").await.unwrap();
    let failure = fixture.open("secrets", "/k", &old).await.unwrap_err();
    assert_eq!(failure.0, "failed to decrypt DEK, error: rpc error: code = NotFound desc = no key key-1");
    assert_eq!(fixture.open("secrets", "/k", &new).await.unwrap().value, "new".into());
    let total = "apiserver_storage_transformation_operations_total";
    assert_eq!(
        fixture.metric(total, &["secrets", "from_storage", "k8s:enc:kms:v2:plugin:", "NotFound"]),
        1.0
    );
}

#[tokio::test]
async fn a_service_that_starts_late_is_waited_for() {
    let socket = socket();
    let path = socket.path.clone();
    let late = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(200)).await;
        KmsPlugin::start(&path).unwrap()
    });
    let fixture = Fixture::load(&rules(&socket.path, "10s")).await;
    assert_eq!(fixture.encryption.health(), Ok(()));
    let stored = fixture.seal("secrets", "/k", b"value").await.unwrap();

    // A restarted plugin is found again.
    let state = late.await.unwrap().stop().await;
    let _plugin = KmsPlugin::start_with(&socket.path, state).unwrap();
    let other = Fixture::load(&rules(&socket.path, "10s")).await;
    assert_eq!(other.open("secrets", "/k", &stored).await.unwrap().value, "value".into());
}

#[tokio::test]
async fn a_service_that_is_not_there_or_slow_is_unhealthy() {
    let socket = socket();
    let fixture = Fixture::load(&rules(&socket.path, "50ms")).await;
    let dial = format!(
        "kms-provider-0: rpc error: code = DeadlineExceeded desc = latest balancer error: connection error: desc = \
         \"transport: Error while dialing: dial unix {}: connect: no such file or directory\"",
        socket.path.display()
    );
    assert_eq!(fixture.encryption.health(), Err(dial));
    for failure in [
        fixture.seal("secrets", "/k", b"value").await.map(drop),
        fixture.open("secrets", KEY, &bytes(KMS_SEED)).await.map(drop),
    ] {
        assert_eq!(failure.unwrap_err().0, "got unexpected nil transformer");
    }
    // Unencrypted values are readable all the same.
    assert!(fixture.open("secrets", "/k", b"{}").await.unwrap().stale);

    let plugin = KmsPlugin::start(&socket.path).unwrap();
    plugin.state().delay = Duration::from_secs(5);
    let fixture = Fixture::load(&rules(&socket.path, "50ms")).await;
    let health = fixture.encryption.health().unwrap_err();
    assert!(health.ends_with("code = DeadlineExceeded desc = context deadline exceeded"), "{health}");
    let latency = "apiserver_envelope_encryption_kms_operations_latency_seconds";
    let observed =
        fixture.metrics.collectors().iter().flat_map(|collector| collector.collect()).any(|family| {
            family.name() == latency
                && family.get_metric().iter().any(|metric| {
                    let labels: Vec<_> = metric.get_label().iter().map(|label| label.value()).collect();
                    labels == ["DeadlineExceeded", "/v2.KeyManagementService/Status", "plugin"]
                })
        });
    assert!(observed);
}

#[tokio::test]
async fn the_first_version_is_refused() {
    let error = Fixture::try_load(
        "- resources: [secrets]\n  providers:\n  - kms: {name: plugin, endpoint: 'unix:///a'}\n",
        false,
    )
    .await;
    let Err(error) = error else { panic!("KMS v1 is not served") };
    let expected = "error while building transformers: KMS provider \"plugin\": KMSv1 is deprecated and will only receive \
                    security updates going forward. Use KMSv2 instead.";
    assert!(error.to_string().ends_with(expected), "{error}");
}

/// A plugin without a socket.
#[derive(Default)]
struct InMemory(Mutex<InMemoryState>);

#[derive(Default)]
struct InMemoryState {
    status: StatusResponse,
    /// The key id that it encrypts with, if it differs from the reported one.
    encrypts_by: Option<String>,
    failure: Option<Status>,
    encryptions: usize,
}

impl KmsService for InMemory {
    fn status(&self) -> BoxFuture<'_, Result<StatusResponse, Status>> {
        let state = self.0.lock();
        let answer = state.failure.clone().map_or_else(|| Ok(state.status.clone()), Err);
        Box::pin(std::future::ready(answer))
    }

    fn encrypt<'a>(
        &'a self,
        _: &'a str,
        plaintext: &'a [u8],
    ) -> BoxFuture<'a, Result<EncryptResponse, Status>> {
        let mut state = self.0.lock();
        state.encryptions += 1;
        let key_id = state.encrypts_by.clone().unwrap_or_else(|| state.status.key_id.clone());
        let answer =
            EncryptResponse { ciphertext: plaintext.to_vec(), key_id, annotations: Default::default() };
        Box::pin(std::future::ready(Ok(answer)))
    }

    fn decrypt(&self, request: DecryptRequest) -> BoxFuture<'_, Result<Zeroizing<Vec<u8>>, Status>> {
        let answer = Zeroizing::new(request.ciphertext.clone());
        Box::pin(std::future::ready(Ok(answer)))
    }
}

struct Watched {
    service: Arc<InMemory>,
    probe: Arc<Probe>,
    transformer: KmsTransformer,
    metrics: Arc<EncryptionMetrics>,
}

fn watched() -> Watched {
    let service = Arc::new(InMemory::default());
    service.0.lock().status =
        StatusResponse { version: "v2".to_owned(), healthz: "ok".to_owned(), key_id: "key-1".to_owned() };
    let metrics = Arc::new(EncryptionMetrics::new("apiserver-test").unwrap());
    let probe = Probe::new("plugin", service.clone(), metrics.clone());
    let transformer = KmsTransformer::new("plugin", service.clone(), probe.clone(), metrics.clone());
    Watched { service, probe, transformer, metrics }
}

impl Watched {
    fn seal(&self) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        self.transformer.seal(b"/k", b"value", &mut out).map_err(|failure| failure.to_string())?;
        Ok(out)
    }

    async fn is_stale(&self, stored: &[u8]) -> bool {
        self.transformer.open(b"/k", stored).await.unwrap_or_else(|failure| panic!("{failure}")).stale
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_key_of_the_service_makes_old_values_stale() {
    let watched = watched();
    watched.probe.check().await.unwrap();
    let running = tokio::spawn(watched.probe.clone().run());
    let old = watched.seal().unwrap();
    watched.service.0.lock().status.key_id = "key-2".to_owned();
    assert!(!watched.is_stale(&old).await);
    tokio::time::sleep(Duration::from_secs(61)).await;
    let new = watched.seal().unwrap();
    assert!(watched.is_stale(&old).await);
    assert!(!watched.is_stale(&new).await);
    assert_eq!(EncryptedObject::parse(&new).unwrap().key_id, "key-2");

    // The same key id keeps the same data key.
    let encryptions = watched.service.0.lock().encryptions;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert!(!watched.is_stale(&new).await);
    watched.seal().unwrap();
    assert_eq!((encryptions, watched.service.0.lock().encryptions), (2, 2));
    assert_eq!(
        metric(&watched.metrics, "apiserver_envelope_encryption_dek_source_cache_size", &["plugin"]),
        2.0
    );
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn writing_ends_three_minutes_after_the_service_was_last_well() {
    let watched = watched();
    watched.probe.check().await.unwrap();
    let running = tokio::spawn(watched.probe.clone().run());
    let stored = watched.seal().unwrap();
    watched.service.0.lock().failure = Some(Status::new(Code::Unavailable, "gone"));
    tokio::time::sleep(Duration::from_secs(175)).await;
    watched.seal().unwrap();
    assert_eq!(
        watched.probe.health().unwrap_err(),
        "failed to perform status section of the healthz check for KMS Provider plugin, error: rpc error: code = \
         Unavailable desc = gone"
    );
    tokio::time::sleep(Duration::from_secs(10)).await;
    let failure = watched.seal().unwrap_err();
    let hash = content_hash(b"key-1");
    assert!(
        failure.starts_with(&format!("encryptedDEKSource with keyID hash \"{hash}\" expired at 2")),
        "{failure}"
    );
    // Reads continue, and writes resume when the plugin is available again.
    assert!(!watched.is_stale(&stored).await);
    watched.service.0.lock().failure = None;
    tokio::time::sleep(Duration::from_secs(11)).await;
    watched.seal().unwrap();
    assert_eq!(watched.probe.health(), Ok(()));
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn health_checks_make_old_answers_new() {
    let watched = watched();
    watched.probe.check().await.unwrap();
    let running = tokio::spawn(watched.probe.clone().run());
    tokio::time::sleep(Duration::from_secs(1)).await;
    watched.service.0.lock().status.healthz = "ill".to_owned();
    for (after, is_well) in [(1, true), (1, true), (20, true), (1, false)] {
        tokio::time::sleep(Duration::from_secs(after)).await;
        assert_eq!(watched.probe.health().is_ok(), is_well, "{after}");
    }
    watched.service.0.lock().status.healthz = "ok".to_owned();
    for (after, is_well) in [(1, false), (3, false), (1, true)] {
        tokio::time::sleep(Duration::from_secs(after)).await;
        assert_eq!(watched.probe.health().is_ok(), is_well, "{after}");
    }
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn answers_that_make_no_sense_are_told() {
    let long = "k".repeat(1025);
    let unhealthy = |why: &str| format!("kmsv2 Provider plugin is not healthy, error: {why}");
    for (version, healthz, key_id, expected) in [
        ("v2beta1", "ok", "key-1", None),
        ("v2", "ill", "key-1", Some("got unexpected healthz status: ill".to_owned())),
        ("v1", "ok", "key-1", Some("expected KMSv2 API version v2, got v1".to_owned())),
        ("v2", "ok", "", Some("got invalid KMSv2 KeyID hash \"\": keyID is empty".to_owned())),
        (
            "v2",
            "ok",
            &long,
            Some(format!(
                "got invalid KMSv2 KeyID hash \"{}\": keyID is 1025 bytes, which exceeds the max size of 1024",
                content_hash(long.as_bytes())
            )),
        ),
        (
            "v1",
            "",
            "key-1",
            Some("[got unexpected healthz status: , expected KMSv2 API version v2, got v1]".to_owned()),
        ),
    ] {
        let watched = watched();
        watched.service.0.lock().status = StatusResponse {
            version: version.to_owned(),
            healthz: healthz.to_owned(),
            key_id: key_id.to_owned(),
        };
        assert_eq!(watched.probe.check().await.err(), expected.map(|why| unhealthy(&why)));
    }
    let watched = watched();
    watched.probe.check().await.unwrap();
    watched.service.0.lock().status.version = "v2beta1".to_owned();
    watched.service.0.lock().status.key_id = String::new();
    tokio::time::advance(Duration::from_secs(21)).await;
    assert_eq!(
        watched.probe.check().await.unwrap_err(),
        unhealthy(
            "[KMSv2 API version should not change after the initial status response version v2, got v2beta1, got \
             invalid KMSv2 KeyID hash \"\": keyID is empty]"
        )
    );
    let invalid = "apiserver_envelope_encryption_invalid_key_id_from_status_total";
    assert_eq!(metric(&watched.metrics, invalid, &["plugin", "empty"]), 1.0);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_changes_between_two_calls_is_not_taken() {
    let watched = watched();
    watched.probe.check().await.unwrap();
    let stored = watched.seal().unwrap();
    watched.service.0.lock().status.key_id = "key-2".to_owned();
    watched.service.0.lock().encrypts_by = Some("key-3".to_owned());
    tokio::time::advance(Duration::from_secs(21)).await;
    let failure = watched.probe.check().await.unwrap_err();
    let (status, encrypt, state) = (content_hash(b"key-2"), content_hash(b"key-3"), content_hash(b"key-1"));
    let hashes = format!(
        "statusKeyIDHash=\"{status}\", encryptKeyIDHash=\"{encrypt}\", stateKeyIDHash=\"{state}\", expirationTimestamp=2"
    );
    assert!(failure.contains("failed to rotate DEK uid=\""), "{failure}");
    assert!(failure.contains(&format!("useSeed=true, errState=<nil>, errGen=<nil>, {hashes}")), "{failure}");
    assert!(!watched.is_stale(&stored).await);
    assert_eq!(EncryptedObject::parse(&watched.seal().unwrap()).unwrap().key_id, "key-1");
}

fn object() -> EncryptedObject {
    EncryptedObject {
        encrypted_data: b"data".as_slice().into(),
        key_id: "key".to_owned(),
        encrypted_dek_source: b"source".to_vec(),
        annotations: Default::default(),
        encrypted_dek_source_type: HKDF_SHA256_XNONCE_AES_GCM_SEED,
    }
}

#[test]
fn stored_values_are_validated() {
    type Change = fn(&mut EncryptedObject);
    let rows: [(Change, &str); 9] = [
        (|object| object.encrypted_dek_source_type = 2, "unknown encryptedDEKSourceType: 2"),
        (|object| object.encrypted_data.clear(), "encrypted data is empty"),
        (
            |object| object.encrypted_dek_source.clear(),
            "failed to validate encrypted DEK source: encrypted DEK source is empty",
        ),
        (
            |object| object.encrypted_dek_source = vec![0; 1025],
            "failed to validate encrypted DEK source: encrypted DEK source is 1025 bytes, which exceeds the max size of \
             1024",
        ),
        (|object| object.key_id.clear(), "failed to validate key id: keyID is empty"),
        (
            |object| object.key_id = "k".repeat(1025),
            "failed to validate key id: keyID is 1025 bytes, which exceeds the max size of 1024",
        ),
        (
            |object| drop(object.annotations.insert("simple".to_owned(), Vec::new())),
            "failed to validate annotations: annotations: Invalid value: \"simple\": should be a domain with at least two \
             segments separated by dots",
        ),
        (
            |object| drop(object.annotations.insert("a.b".to_owned(), vec![0; 32 * 1024])),
            "failed to validate annotations: total size of annotations is 32771, which exceeds the max size of 32768",
        ),
        (|_| {}, ""),
    ];
    for (change, expected) in rows {
        let mut object = object();
        change(&mut object);
        let failure =
            EncryptedObject::parse(&object.encode_to_vec()).err().map(|failure| failure.to_string());
        assert_eq!(failure.unwrap_or_default(), expected);
    }
    let failure = EncryptedObject::parse(b"\xff").unwrap_err();
    assert_eq!(failure.to_string(), "proto: cannot parse invalid wire-format data");
}

#[test]
fn data_keys_are_told_apart() {
    let object = object();
    type Change = fn(&mut EncryptedObject);
    let changes: [Change; 5] = [
        |object| object.encrypted_dek_source_type = AES_GCM_KEY,
        |object| object.encrypted_dek_source.push(0),
        |object| object.key_id.push('x'),
        |object| drop(object.annotations.insert("a.b".to_owned(), Vec::new())),
        // The same bytes, in other fields.
        |object| {
            object.encrypted_dek_source = b"sourcek".to_vec();
            object.key_id = "ey".to_owned();
        },
    ];
    for change in changes {
        let mut other = object.clone();
        change(&mut other);
        assert!(other.cache_key() != object.cache_key());
    }
    let mut other = object.clone();
    other.encrypted_data.clear();
    assert!(other.cache_key() == object.cache_key());
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = EncryptedObject::parse(&bytes);
    }

    #[test]
    fn damage_is_found(at in any::<prop::sample::Index>(), change in 1..=255u8) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let changed = runtime.block_on(async {
            let watched = watched();
            watched.probe.check().await.unwrap();
            let mut stored = watched.seal().unwrap();
            let at = at.index(stored.len());
            stored[at] ^= change;
            watched.transformer.open(b"/k", &stored).await.map(|opened| (opened.value, opened.stale))
        });
        // The key id is not authenticated; a different one makes the value stale.
        prop_assert!(changed.as_ref().is_err() || changed.as_ref().is_ok_and(|(value, stale)| value == "value" && *stale));
    }
}
