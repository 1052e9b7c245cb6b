//! Tests of the selection of providers, and of staleness.

use super::{Fixture, keyed, rule};

async fn prefix(fixture: &Fixture, resource: &str) -> String {
    let stored = fixture.seal(resource, "/registry/x", b"value").await.unwrap();
    match stored.starts_with(b"k8s:enc:") {
        true => String::from_utf8_lossy(&stored).split(':').nth(4).unwrap().to_owned(),
        false => String::new(),
    }
}

#[tokio::test]
async fn the_most_specific_rule_counts() {
    let rules = [
        "- resources: [events]\n  providers:\n  - identity: {}\n".to_owned(),
        rule("secrets, configmaps, pandas.awesome.bears.example", "aescbc", "own", 1),
        rule("'*.apps'", "aesgcm", "apps", 2),
        rule("'*.'", "secretbox", "core", 3),
        rule("'*.*'", "aesgcm", "all", 4),
    ];
    let fixture = Fixture::load(&rules.concat()).await;
    for (resource, expected) in [
        ("events", ""),
        ("secrets", "own"),
        ("pandas.awesome.bears.example", "own"),
        ("koalas.awesome.bears.example", "all"),
        ("deployments.apps", "apps"),
        ("secrets.apps", "apps"),
        ("pods", "core"),
        ("jobs.batch", "all"),
    ] {
        assert_eq!(prefix(&fixture, resource).await, expected, "{resource}");
    }
    assert_eq!(prefix(&Fixture::load(&rule("secrets", "aesgcm", "a", 1)).await, "configmaps").await, "");
}

#[tokio::test]
async fn rules_that_mean_nothing_are_refused() {
    for (first, second, expected) in [
        ("'*.*'", "secrets", r#"resource "secrets" is masked by earlier rule "*.*""#),
        ("'*.apps'", "deployments.apps", r#"resource "deployments.apps" is masked by earlier rule "*.apps""#),
        ("'*.'", "pods", r#"resource "pods" is masked by earlier rule "*.""#),
        ("'*.'", "'*.'", r#"resource "*." is masked by earlier rule "*.""#),
    ] {
        let rules = [rule(first, "aesgcm", "a", 1), rule(second, "aesgcm", "b", 2)].concat();
        let Err(error) = Fixture::try_load(&rules, false).await else { panic!("{first} and {second}") };
        let error = error.to_string();
        assert!(error.ends_with(&format!("error while building transformers: {expected}")), "{error}");
    }
}

#[tokio::test]
async fn rules_for_one_resource_are_put_together() {
    let rules = [rule("secrets", "aesgcm", "new", 1), rule("secrets", "aescbc", "old", 2)].concat();
    let fixture = Fixture::load(&rules).await;
    let old = Fixture::load(&rule("secrets", "aescbc", "old", 2)).await;
    let stored = old.seal("secrets", "/k", b"value").await.unwrap();
    let opened = fixture.open("secrets", "/k", &stored).await.unwrap();
    assert_eq!((opened.value.as_ref(), opened.stale), (b"value".as_slice(), true));
    assert_eq!(prefix(&fixture, "secrets").await, "new");
}

#[tokio::test]
async fn values_that_would_be_written_otherwise_are_stale() {
    let providers = |text: String| format!("- resources: [secrets]\n  providers:\n{text}");
    let identity = "  - identity: {}\n";
    let one = Fixture::load(&providers(keyed("aesgcm", &[("one", 1)]))).await;
    let by_one = one.seal("secrets", "/k", b"value").await.unwrap();
    let plain = b"{\"value\":1}".as_slice();
    for (now, stored, expected) in [
        (keyed("aesgcm", &[("one", 1)]), by_one.as_ref(), Ok(false)),
        (keyed("aesgcm", &[("two", 2), ("one", 1)]), &by_one, Ok(true)),
        (keyed("secretbox", &[("two", 2)]) + &keyed("aesgcm", &[("one", 1)]), &by_one, Ok(true)),
        // Two providers of one type, and two keys of one name.
        (keyed("aesgcm", &[("two", 2)]) + &keyed("aesgcm", &[("one", 1)]), &by_one, Ok(true)),
        (keyed("aesgcm", &[("one", 2), ("one", 1)]), &by_one, Ok(true)),
        (identity.to_owned() + &keyed("aesgcm", &[("one", 1)]), &by_one, Ok(true)),
        (identity.to_owned() + &keyed("aesgcm", &[("one", 1)]), plain, Ok(false)),
        (keyed("aesgcm", &[("one", 1)]) + identity, plain, Ok(true)),
        (keyed("aesgcm", &[("one", 2)]), &by_one, Err("cipher: message authentication failed")),
        (
            keyed("aesgcm", &[("two", 2)]),
            &by_one,
            Err("no matching key was found for the provided AES transformer"),
        ),
        (
            keyed("aesgcm", &[("one", 2)]) + &keyed("aesgcm", &[("two", 1)]),
            &by_one,
            Err(
                "[cipher: message authentication failed, no matching key was found for the provided AES transformer]",
            ),
        ),
        (identity.to_owned(), &by_one, Err("no matching prefix found")),
    ] {
        let fixture = Fixture::load(&providers(now.clone())).await;
        let opened = fixture.open("secrets", "/k", stored).await;
        let stale = opened.as_ref().map(|opened| opened.stale).map_err(|failure| failure.0.as_str());
        assert_eq!(stale, expected, "{now}");
    }
}

#[tokio::test]
async fn transformations_are_counted() {
    let fixture = Fixture::load(&rule("secrets, '*.apps'", "aesgcm", "one", 1)).await;
    let total = "apiserver_storage_transformation_operations_total";
    let stored = fixture.seal("deployments.apps", "/k", b"value").await.unwrap();
    fixture.open("deployments.apps", "/k", &stored).await.unwrap();
    fixture.open("deployments.apps", "/other", &stored).await.unwrap_err();
    fixture.open("secrets", "/k", b"{}").await.unwrap_err();
    fixture.open("pods", "/k", b"{}").await.unwrap();
    let (resource, prefix) = ("deployments.apps", "k8s:enc:aesgcm:v1:");
    for (labels, expected) in [
        ([resource, "to_storage", prefix, "OK"], 1.0),
        ([resource, "to_storage", "one:", "OK"], 1.0),
        ([resource, "from_storage", prefix, "OK"], 1.0),
        ([resource, "from_storage", prefix, "unknown-non-grpc"], 1.0),
        ([resource, "from_storage", "one:", "unknown-non-grpc"], 1.0),
        (["secrets", "from_storage", "unknown", "unknown-non-grpc"], 1.0),
        (["pods", "from_storage", "identity", "OK"], 0.0),
    ] {
        assert_eq!(fixture.metric(total, &labels), expected, "{labels:?}");
    }
}
