//! Tests `--encryption-provider-config`: it changes the stored bytes, and nothing that clients see.

use crate::harness::{PATIENCE, Server, options};
use bytes::Bytes;
use pintle::{RunError, StorageBackend};
use pintle_kms_plugin::{KmsPlugin, State};
use pintle_storage::{EmbeddedOptions, EmbeddedStorage, Key, ListRequest, Storage};
use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tokio::{net::UnixListener, time::timeout};

const SECRET: &str = "/api/v1/namespaces/default/secrets/db";
const STORED_SECRET: &str = "/registry/secrets/default/db";
/// `hunter2hunter2` in base64, as clients see it.
const PASSWORD: &str = "aHVudGVyMmh1bnRlcjI=";

const ONE: &str = "aescbc: {keys: [{name: one, secret: AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=}]}";
const TWO: &str = "secretbox: {keys: [{name: two, secret: AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=}]}";
const OTHER_ONE: &str = "aescbc: {keys: [{name: one, secret: AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=}]}";

/// A data directory that outlives servers.
struct Disk(TempDir);

impl Disk {
    fn new() -> Disk {
        Disk(tempfile::tempdir().unwrap())
    }

    fn config(&self) -> PathBuf {
        self.0.path().join("encryption.yaml")
    }

    fn socket(&self) -> PathBuf {
        self.0.path().join("kms.sock")
    }

    fn write_config(&self, resources: &str, providers: &[&str]) {
        let providers: Vec<String> = providers.iter().map(|provider| format!("  - {provider}\n")).collect();
        let text = format!(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [{resources}]\n  providers:\n{}",
            providers.concat()
        );
        let new = self.config().with_extension("new");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, self.config()).unwrap();
    }

    fn options(&self, reload: bool) -> pintle::Options {
        let mut options = options(self.0.path());
        options.storage_backend = StorageBackend::Embedded;
        options.encryption_provider_config = Some(self.config());
        options.encryption_provider_config_automatic_reload = reload;
        options.encryption_provider_config_poll_interval = Duration::from_millis(20);
        options
    }

    async fn start(&self) -> Server {
        Server::start_in(self.options(false)).await
    }

    async fn start_with(&self, resources: &str, providers: &[&str]) -> Server {
        self.write_config(resources, providers);
        self.start().await
    }

    /// The stored bytes; call it while no server runs.
    async fn stored(&self, key: &str) -> Bytes {
        let store = self.0.path().join("store");
        let storage = EmbeddedStorage::open(store, EmbeddedOptions::default()).unwrap();
        let stored = storage.get(&Key::new(key)).await.unwrap().kv.unwrap().value;
        storage.close().await.unwrap();
        stored.bytes
    }

    async fn all_stored(&self) -> Vec<(Key, Bytes)> {
        let store = self.0.path().join("store");
        let storage = EmbeddedStorage::open(store, EmbeddedOptions::default()).unwrap();
        let all = ListRequest { prefix: "/".to_owned(), start_after: None, limit: 0, revision: None };
        let items = storage.get_list(all).await.unwrap().items;
        storage.close().await.unwrap();
        items.into_iter().map(|kv| (kv.key, kv.value.bytes)).collect()
    }

    /// Whether any file of the store contains these bytes.
    fn holds(&self, needle: &[u8]) -> bool {
        files(&self.0.path().join("store")).iter().any(|path| {
            let bytes = std::fs::read(path).unwrap();
            bytes.windows(needle.len()).any(|window| window == needle)
        })
    }
}

fn files(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let Ok(entries) = std::fs::read_dir(path) else {
        // The store is one file, and files named after it.
        return Vec::new();
    };
    entries.flat_map(|entry| files(&entry.unwrap().path())).collect()
}

async fn create(server: &Server, path: &str, body: &str) {
    let created = server.send(&format!("POST {path}\n\n{body}")).await;
    assert_eq!(created.status, 201, "{}", created.text());
}

async fn create_secret(server: &Server) {
    let body = format!(r#"{{"metadata":{{"name":"db"}},"data":{{"password":"{PASSWORD}"}}}}"#);
    create(server, "/api/v1/namespaces/default/secrets", &body).await;
}

async fn assert_readable(server: &Server) {
    let read = server.send(&format!("GET {SECRET}")).await;
    assert_eq!(read.status, 200, "{}", read.text());
    assert_eq!(read.str_at("/data/password"), PASSWORD);
}

/// Reads all secrets and writes them as they are, as `kubectl get secrets -A -o json | kubectl replace -f -` does.
async fn rewrite_secrets(server: &Server) {
    for secret in server.send("GET /api/v1/secrets").await.json()["items"].as_array().unwrap() {
        let path = format!(
            "/api/v1/namespaces/{}/secrets/{}",
            secret["metadata"]["namespace"].as_str().unwrap(),
            secret["metadata"]["name"].as_str().unwrap()
        );
        let replaced = server.send(&format!("PUT {path}\n\n{secret}")).await;
        assert_eq!(replaced.status, 200, "{}", replaced.text());
    }
}

/// Repeats a GET until the response is as wanted.
async fn until(server: &Server, path: &str, wanted: impl Fn(u16, &str) -> bool) {
    let start = Instant::now();
    loop {
        let answer = server.send(&format!("GET {path}")).await;
        if wanted(answer.status, answer.text()) {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "{path}: {}", answer.text());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_rules_name_is_stored_encrypted() {
    let disk = Disk::new();
    let server = disk.start_with("secrets, '*.apps'", &[ONE]).await;
    create_secret(&server).await;
    let config_map = r#"{"metadata":{"name":"plain"},"data":{"greeting":"q7XkP2mZ9vLw4RtB"}}"#;
    create(&server, "/api/v1/namespaces/default/configmaps", config_map).await;
    let revision = r#"{"metadata":{"name":"r"},"revision":1,"data":{"note":"hidden-in-the-revision"}}"#;
    create(&server, "/apis/apps/v1/namespaces/default/controllerrevisions", revision).await;
    assert_readable(&server).await;
    server.stop().await;

    let prefix = b"k8s:enc:aescbc:v1:one:";
    assert!(disk.stored(STORED_SECRET).await.starts_with(prefix));
    assert!(disk.stored("/registry/controllerrevisions/default/r").await.starts_with(prefix));
    assert!(!disk.stored("/registry/configmaps/default/plain").await.starts_with(b"k8s:enc:"));
    assert!(disk.holds(b"q7XkP2mZ9vLw4RtB"));
    for hidden in [PASSWORD.as_bytes(), b"hunter2", b"hidden-in-the-revision"] {
        assert!(!disk.holds(hidden), "{}", String::from_utf8_lossy(hidden));
    }
    let server = disk.start().await;
    assert_readable(&server).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_rotated_by_writing_everything_again() {
    let disk = Disk::new();
    let server = disk.start_with("secrets", &["identity: {}", ONE]).await;
    create_secret(&server).await;
    server.stop().await;
    assert!(!disk.stored(STORED_SECRET).await.starts_with(b"k8s:enc:"));
    for (providers, prefix) in [
        (vec![ONE, "identity: {}"], "k8s:enc:aescbc:v1:one:"),
        (vec![TWO, ONE], "k8s:enc:secretbox:v1:two:"),
        (vec!["identity: {}", TWO], ""),
    ] {
        let before = disk.stored(STORED_SECRET).await;
        let server = disk.start_with("secrets", &providers).await;
        assert_readable(&server).await;
        let version = server.send(&format!("GET {SECRET}")).await.resource_version();
        rewrite_secrets(&server).await;
        let rewritten = server.send(&format!("GET {SECRET}")).await.resource_version();
        assert_ne!(version, rewritten, "{prefix}");
        // A secret that the first provider has encrypted already is not written again.
        rewrite_secrets(&server).await;
        assert_eq!(server.send(&format!("GET {SECRET}")).await.resource_version(), rewritten, "{prefix}");
        assert_readable(&server).await;
        server.stop().await;
        let after = disk.stored(STORED_SECRET).await;
        assert_ne!(before, after);
        assert!(after.starts_with(prefix.as_bytes()), "{prefix}");
        assert_eq!(after.starts_with(b"k8s:enc:"), !prefix.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_key_takes_away_only_what_it_is_for() {
    let disk = Disk::new();
    let server = disk.start_with("secrets", &[ONE]).await;
    create_secret(&server).await;
    create(&server, "/api/v1/namespaces/default/configmaps", r#"{"metadata":{"name":"plain"}}"#).await;
    server.stop().await;
    for (providers, expected) in [
        (Some(vec![TWO]), "Internal error occurred: no matching prefix found"),
        (Some(vec!["identity: {}", TWO]), "Internal error occurred: no matching prefix found"),
        (None, "Internal error occurred: identity transformer tried to read encrypted data"),
    ] {
        let server = match &providers {
            Some(providers) => disk.start_with("secrets", providers).await,
            None => {
                let mut options = disk.options(false);
                options.encryption_provider_config = None;
                Server::start_in(options).await
            }
        };
        let read = server.send(&format!("GET {SECRET}")).await;
        assert_eq!((read.status, read.str_at("/message")), (500, expected.to_owned()));
        assert_eq!(server.send("GET /api/v1/namespaces/default/configmaps/plain").await.status, 200);
        create(&server, "/api/v1/namespaces/default/secrets", r#"{"metadata":{"generateName":"new-"}}"#)
            .await;
        server.stop().await;
    }
    // Another key of the same name decrypts to garbage or wrong padding.
    let server = disk.start_with("secrets", &[OTHER_ONE]).await;
    let read = server.send(&format!("GET {SECRET}")).await;
    assert_eq!(read.status, 500, "{}", read.text());
    assert!(!read.text().contains(PASSWORD));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_that_makes_no_sense_keeps_the_server_from_starting() {
    let disk = Disk::new();
    let start = async |options| match pintle::start(options).await {
        Ok(_) => panic!("it started"),
        Err(error) => error,
    };
    assert!(start(disk.options(false)).await.to_string().contains("encryption.yaml"));
    disk.write_config("secrets", &["aesgcm: {keys: [{name: a, secret: c2hvcnQ=}]}"]);
    let error = start(disk.options(false)).await;
    assert!(matches!(error, RunError::Encryption(_)));
    assert_eq!(
        error.to_string(),
        "error while parsing file: resources[0].providers[0].aesgcm.keys[0].secret: Invalid value: \"REDACTED\": secret is not \
         of the expected length, got 5, expected one of [16 24 32]"
    );
    let mut options = disk.options(true);
    options.encryption_provider_config = None;
    assert_eq!(
        start(options).await.to_string(),
        "--encryption-provider-config-automatic-reload must be set with --encryption-provider-config"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_configuration_is_put_in_force() {
    let disk = Disk::new();
    disk.write_config("secrets", &[ONE]);
    let server = Server::start_in(disk.options(true)).await;
    create_secret(&server).await;
    let counted = |status: &'static str| {
        move |_: u16, text: &str| {
            text.lines().any(|line| {
                line.starts_with("apiserver_encryption_config_controller_automatic_reloads_total{")
                    && line.contains(&format!("status=\"{status}\""))
            })
        }
    };
    disk.write_config("secrets", &[TWO, ONE]);
    until(&server, "/metrics", counted("success")).await;
    disk.write_config("secrets", &["nonsense: {}"]);
    until(&server, "/metrics", counted("failure")).await;
    assert_readable(&server).await;
    rewrite_secrets(&server).await;
    let reloading = "poststarthook/start-encryption-provider-config-automatic-reload";
    for path in ["healthz", "livez", "readyz"] {
        let check = server.send(&format!("GET /{path}/{reloading}")).await;
        assert_eq!(check.status, 200, "{path}");
    }
    let health = server.send("GET /readyz/kms-providers").await;
    assert_eq!(health.status, 200);
    let metrics = server.send("GET /metrics").await;
    let encrypted = "apiserver_storage_transformation_operations_total{resource=\"secrets\",status=\"OK\",\
                     transformation_type=\"to_storage\",transformer_prefix=\"k8s:enc:secretbox:v1:\"} 1";
    assert!(metrics.text().contains(encrypted), "{}", metrics.text());
    server.stop().await;
    assert!(disk.stored(STORED_SECRET).await.starts_with(b"k8s:enc:secretbox:v1:two:"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_service_may_come_late_and_change_its_key() {
    let disk = Disk::new();
    let kms = format!(
        "kms: {{apiVersion: v2, name: vault, timeout: 200ms, endpoint: 'unix://{}'}}",
        disk.socket().display()
    );
    let plugin = KmsPlugin::start(&disk.socket()).unwrap();
    let server = disk.start_with("secrets", &[&kms]).await;
    create_secret(&server).await;
    assert_readable(&server).await;
    for (path, status) in [
        ("/healthz/kms-providers", 200),
        ("/readyz/kms-providers", 200),
        // A restart would not help: liveness does not include the check.
        ("/livez/kms-providers", 404),
        // The file is not followed.
        ("/readyz/poststarthook/start-encryption-provider-config-automatic-reload", 404),
    ] {
        assert_eq!(server.send(&format!("GET {path}")).await.status, status, "{path}");
    }
    server.stop().await;
    let state = plugin.stop().await;
    assert_eq!(state.encryptions, 1);
    let stored = disk.stored(STORED_SECRET).await;
    assert!(stored.starts_with(b"k8s:enc:kms:v2:vault:"));
    assert!(!disk.holds(b"hunter2") && !disk.holds(PASSWORD.as_bytes()));

    // Without the KMS provider the secret cannot be read, and the server is not ready.
    let server = disk.start().await;
    let read = server.send(&format!("GET {SECRET}")).await;
    assert_eq!(
        (read.status, read.str_at("/message")),
        (500, "Internal error occurred: got unexpected nil transformer".to_owned())
    );
    let ready = server.send("GET /readyz").await;
    assert_eq!(ready.status, 500);
    assert!(ready.text().contains("[-]kms-providers failed: reason withheld"), "{}", ready.text());

    // The provider starts, with another key, and the server recovers without a restart.
    let key_id = "key-2".to_owned();
    let plugin = KmsPlugin::start_with(&disk.socket(), State { key_id, ..state }).unwrap();
    until(&server, "/readyz/kms-providers", |status, _| status == 200).await;
    until(&server, SECRET, |status, _| status == 200).await;
    assert_readable(&server).await;
    rewrite_secrets(&server).await;
    server.stop().await;
    drop(plugin);
    let rewritten = disk.stored(STORED_SECRET).await;
    let has = |needle: &[u8]| rewritten.windows(needle.len()).any(|window| window == needle);
    assert!(has(b"key-2") && !has(b"key-1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_all_of_whose_objects_are_encrypted_waits_for_its_key_service() {
    let disk = Disk::new();
    let kms = format!(
        "kms: {{apiVersion: v2, name: vault, timeout: 200ms, endpoint: 'unix://{}'}}",
        disk.socket().display()
    );
    disk.write_config("'*.*'", &[&kms]);
    let start_before = async |state: State| {
        let options = disk.options(false);
        // The key service closes its first connection.
        let refusing = UnixListener::bind(disk.socket()).unwrap();
        let starting = tokio::spawn(async move { Server::start_in(options).await });
        drop(timeout(PATIENCE, refusing.accept()).await.unwrap().unwrap());
        assert!(!starting.is_finished());
        drop(refusing);
        std::fs::remove_file(disk.socket()).unwrap();
        let plugin = KmsPlugin::start_with(&disk.socket(), state).unwrap();
        (timeout(PATIENCE, starting).await.unwrap().unwrap(), plugin)
    };
    let (server, plugin) = start_before(State::default()).await;
    create_secret(&server).await;
    server.stop().await;
    let stored = disk.all_stored().await;
    assert!(stored.len() > 5);
    for (key, value) in stored {
        // No encryption rule can name the server's own records.
        let is_own = key.as_str().starts_with("/registry/ranges/");
        assert_eq!(value.starts_with(b"k8s:enc:kms:v2:vault:"), !is_own, "{key}");
    }
    // At the next start the objects exist, and cannot be read at first.
    let (server, _plugin) = start_before(plugin.stop().await).await;
    assert_readable(&server).await;
    server.stop().await;
}
