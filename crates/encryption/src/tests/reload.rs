//! Tests of changes of the configuration.

use super::{Fixture, config, keyed, rule, secret};
use pintle_config_metrics::content_hash;
use pintle_kms_plugin::KmsPlugin;
use std::time::Duration;

const RELOADS: &str = "apiserver_encryption_config_controller_automatic_reloads_total";

async fn until(mut is: impl FnMut() -> bool) {
    for _ in 0..500 {
        if is() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("waited in vain");
}

#[tokio::test]
async fn a_new_configuration_is_put_in_force_and_a_broken_one_is_not() {
    let fixture = Fixture::try_load(&rule("secrets", "aesgcm", "one", 1), true).await.unwrap();
    assert!(fixture.encryption.has_health_check());
    let running = tokio::spawn(fixture.encryption.clone().run());
    let by_one = fixture.seal("secrets", "/k", b"value").await.unwrap();

    // Rotation: the new key is added, then used, then the only one.
    let rotated = config(&format!(
        "- resources: [secrets]\n  providers:\n{}",
        keyed("aesgcm", &[("two", 2), ("one", 1)])
    ));
    fixture.rewrite(&rotated);
    until(|| fixture.metric(RELOADS, &["success"]) == 1.0).await;
    let by_two = fixture.seal("secrets", "/k", b"value").await.unwrap();
    assert!(by_two.starts_with(b"k8s:enc:aesgcm:v1:two:"));
    assert!(fixture.open("secrets", "/k", &by_one).await.unwrap().stale);
    let info = "apiserver_encryption_config_controller_last_config_info";
    assert_eq!(fixture.metric(info, &[&content_hash(rotated.as_bytes())]), 1.0);
    assert_eq!(fixture.metric(info, &[]), 1.0);

    for broken in [
        "resources: [".to_owned(),
        config(&rule("secrets", "aesgcm", "", 3)),
        config(&rule("'*.*'", "aesgcm", "a", 3).repeat(2)),
        String::new(),
    ] {
        let failures = fixture.metric(RELOADS, &["failure"]);
        fixture.rewrite(&broken);
        until(|| fixture.metric(RELOADS, &["failure"]) > failures).await;
        assert!(!fixture.open("secrets", "/k", &by_two).await.unwrap().stale);
        assert!(fixture.open("secrets", "/k", &by_one).await.unwrap().stale);
    }
    assert_eq!(fixture.metric(RELOADS, &["success"]), 1.0);

    fixture.rewrite(&config(&rule("secrets", "aesgcm", "two", 2)));
    until(|| fixture.metric(RELOADS, &["success"]) == 2.0).await;
    fixture.open("secrets", "/k", &by_one).await.unwrap_err();
    assert!(!fixture.open("secrets", "/k", &by_two).await.unwrap().stale);
    running.abort();
}

#[tokio::test]
async fn a_configuration_whose_key_service_is_not_there_is_not_put_in_force() {
    let fixture = Fixture::try_load(&rule("secrets", "aesgcm", "one", 1), true).await.unwrap();
    let socket = tempfile::tempdir().unwrap();
    let socket = socket.path().join("kms.sock");
    fixture.rewrite(&config(&format!(
        "- resources: [secrets]\n  providers:\n  - kms: {{apiVersion: v2, name: p, timeout: 50ms, endpoint: 'unix://{}'}}\n",
        socket.display()
    )));
    tokio::time::pause();
    let running = tokio::spawn(fixture.encryption.clone().run());
    while fixture.metric(RELOADS, &["failure"]) == 0.0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let stored = fixture.seal("secrets", "/k", b"value").await.unwrap();
    assert!(stored.starts_with(b"k8s:enc:aesgcm:v1:one:"));
    assert_eq!(fixture.encryption.health(), Ok(()));
    running.abort();
}

#[tokio::test]
async fn nothing_tells_a_secret() {
    let fixture = Fixture::load(&rule("secrets", "aesgcm", "one", 7)).await;
    let config = crate::config::read(&fixture.dir.path().join("encryption.yaml"), false).unwrap();
    let shown = format!("{config:?}");
    assert!(shown.contains("one") && !shown.contains("7, 7") && !shown.contains(&secret(7)), "{shown}");
    let stored = fixture.seal("secrets", "/k", b"hunter2").await.unwrap();
    let failure = fixture.open("secrets", "/other", &stored).await.unwrap_err();
    assert!(!format!("{failure:?} {failure}").contains("hunter2"));
}

#[tokio::test]
async fn a_key_service_is_taken_in_and_let_go() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("kms.sock");
    let plugin = KmsPlugin::start(&socket).unwrap();
    let kms = format!("  - kms: {{apiVersion: v2, name: p, endpoint: 'unix://{}'}}\n", socket.display());
    let local = keyed("aesgcm", &[("one", 1)]);
    let rules = |providers: &[&str]| format!("- resources: [secrets]\n  providers:\n{}", providers.concat());
    let fixture = Fixture::try_load(&rules(&[&local]), true).await.unwrap();
    let running = tokio::spawn(fixture.encryption.clone().run());
    fixture.rewrite(&config(&rules(&[&kms, &local])));
    until(|| fixture.metric(RELOADS, &["success"]) == 1.0).await;
    let stored = fixture.seal("secrets", "/k", b"value").await.unwrap();
    assert!(stored.starts_with(b"k8s:enc:kms:v2:p:"));

    // The same plugin in another configuration: a new seed is generated, and the old one is decrypted again.
    fixture.rewrite(&config(&rules(&[&local, &kms])));
    until(|| fixture.metric(RELOADS, &["success"]) == 2.0).await;
    let opened = fixture.open("secrets", "/k", &stored).await.unwrap();
    assert_eq!((opened.value.as_ref(), opened.stale), (b"value".as_slice(), true));
    let state = plugin.state().clone();
    assert_eq!((state.encryptions, state.decryptions), (2, 1));

    // Without a provider that uses it, the plugin is not called and may be removed.
    fixture.rewrite(&config(&rules(&[&local])));
    until(|| fixture.metric(RELOADS, &["success"]) == 3.0).await;
    drop(plugin);
    assert_eq!(fixture.encryption.health(), Ok(()));
    assert_eq!(fixture.open("secrets", "/k", &stored).await.unwrap_err().0, "no matching prefix found");
    running.abort();
}
