//! Tests the behavior that is particular to etcd: certificates, clusters, leases, compaction by several servers, and
//! keys of other programs.

use pintle_etcd_tests::{options, put, read};
use pintle_harness::{Error, Etcd, EtcdConfig};
use pintle_storage::{
    BoxFuture, CompactionRound, EtcdConnection, EtcdDialer, EtcdOpenError, EtcdOptions, EtcdStorage, Key,
    ListRequest, Revision, Storage, StorageError, StorageEvent, WatchRequest, WatchStream, WriteError,
};
use serde_json::json;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{net::TcpStream, time::timeout};

fn list(prefix: &str) -> ListRequest {
    ListRequest { prefix: prefix.to_owned(), start_after: None, limit: 0, revision: None }
}

async fn next(stream: &mut WatchStream) -> Result<Vec<StorageEvent>, Error> {
    Ok(timeout(Duration::from_secs(20), stream.next_batch()).await?.ok_or("the watch ended")?)
}

#[tokio::test]
async fn certificates_are_shown_and_checked() -> Result<(), Error> {
    let etcd = Etcd::launch(EtcdConfig::current()?.with_tls())?;
    let right = options(&etcd, "/registry/");
    let storage = EtcdStorage::open(right.clone()).await?;
    let key = Key::new("/registry/a");
    let created = storage.create(&key, "1".into(), None).await?;
    assert_eq!(storage.get(&key).await?.revision, created);

    let patience = Duration::from_millis(500);
    // The client's own certificate is no trust anchor of the server's.
    let wrong_authority =
        EtcdOptions { ca_file: right.cert_file.clone(), open_patience: patience, ..right.clone() };
    let no_certificate =
        EtcdOptions { cert_file: None, key_file: None, open_patience: patience, ..right.clone() };
    // With TLS 1.3 a member refuses behind the handshake.
    let told: [(_, &[&str]); 2] = [
        (wrong_authority, &["tls: failed to verify certificate: x509: "]),
        (no_certificate, &["remote error: tls: bad certificate", "CertificateRequired"]),
    ];
    for (wrong, why) in told {
        let outcome = EtcdStorage::open(wrong).await.map(drop);
        let is_told = |error: &EtcdOpenError| {
            let text = error.to_string();
            matches!(error, EtcdOpenError::Unavailable(_)) && why.iter().any(|why| text.contains(why))
        };
        assert!(outcome.as_ref().is_err_and(is_told), "{outcome:?}");
    }
    let no_file = EtcdOptions { key_file: Some("/no/such/file".into()), ..right };
    let outcome = EtcdStorage::open(no_file).await.map(drop);
    assert!(matches!(outcome, Err(EtcdOpenError::File { .. })), "{outcome:?}");
    Ok(())
}

/// Knows the address of a member that no name leads to.
struct Network {
    member: String,
    asked: Mutex<Vec<String>>,
}

impl EtcdDialer for Network {
    fn dial<'a>(&'a self, address: &'a str) -> BoxFuture<'a, Result<Box<dyn EtcdConnection>, String>> {
        self.asked.lock().unwrap().push(address.to_owned());
        Box::pin(async move {
            let stream = TcpStream::connect(&self.member).await.map_err(|error| error.to_string())?;
            Ok(Box::new(stream) as Box<dyn EtcdConnection>)
        })
    }
}

#[tokio::test]
async fn members_in_another_network_are_reached_by_its_dialer() -> Result<(), Error> {
    let etcd = Etcd::start(1)?;
    let member = etcd.urls().trim_start_matches("http://").to_owned();
    let network = Arc::new(Network { member, asked: Mutex::default() });
    let mut options = EtcdOptions::new(["http://etcd.invalid:2379"], "/registry/");
    options.dialer = Some(network.clone());
    let storage = EtcdStorage::open(options).await?;
    let key = Key::new("/registry/a");
    let created = storage.create(&key, "1".into(), None).await?;
    assert_eq!(storage.get(&key).await?.revision, created);
    let asked = network.asked.lock().unwrap();
    assert!(!asked.is_empty() && asked.iter().all(|address| address == "etcd.invalid:2379"), "{asked:?}");
    Ok(())
}

#[tokio::test]
async fn a_cluster_that_does_not_answer_is_told_at_once() -> Result<(), Error> {
    let mut options = EtcdOptions::new(["http://127.0.0.1:1"], "/registry/");
    options.open_patience = Duration::from_millis(300);
    let outcome = EtcdStorage::open(options).await.map(drop);
    assert!(
        matches!(&outcome, Err(EtcdOpenError::Unavailable(error)) if error.contains("127.0.0.1:1")),
        "{outcome:?}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_of_another_cluster_is_never_asked() -> Result<(), Error> {
    let mut ours = Etcd::start(1)?;
    // To etcd, two clusters of one member with the same name and peer address would be the same cluster.
    let others = Etcd::launch(EtcdConfig::current()?.flag("--initial-cluster-token=other"))?;
    let urls = [ours.urls(), others.urls()];
    let storage = EtcdStorage::open(EtcdOptions::new(urls, "/registry/")).await?;
    storage.create(&Key::new("/registry/a"), "1".into(), None).await?;
    ours.member_mut(0)?.kill()?;
    let write = timeout(Duration::from_secs(2), storage.create(&Key::new("/registry/b"), "1".into(), None));
    assert!(!matches!(write.await, Ok(Ok(_))));
    assert_eq!(read(&others, "/registry/b")?, None);
    ours.member_mut(0)?.restart()?;
    ours.wait_ready()?;
    assert!(storage.get(&Key::new("/registry/a")).await?.kv.is_some());
    Ok(())
}

#[tokio::test]
async fn keys_with_one_time_to_live_share_a_lease() -> Result<(), Error> {
    let etcd = Etcd::start(1)?;
    let storage = EtcdStorage::open(options(&etcd, "/registry/")).await?;
    let hour = Some(Duration::from_secs(3600));
    for object in 0..20 {
        storage.create(&Key::new(format!("/registry/events/{object}")), "1".into(), hour).await?;
    }
    let leases = etcd.member(0)?.call("/v3/lease/leases", &json!({}))?;
    let [lease] = leases["leases"].as_array().ok_or("no leases")?.as_slice() else {
        return Err(format!("not one lease: {leases}").into());
    };
    let granted = etcd.member(0)?.call("/v3/lease/timetolive", &json!({"ID": lease["ID"]}))?;
    assert_eq!(granted["grantedTTL"], "3660", "an hour, and a minute in which it is used again: {granted}");

    // Another program revokes the lease: its keys are deleted, and the next key gets a new lease.
    etcd.member(0)?.call("/v3/lease/revoke", &json!({"ID": lease["ID"]}))?;
    storage.create(&Key::new("/registry/events/later"), "1".into(), hour).await?;
    let left = storage.get_list(list("/registry/events/")).await?;
    assert_eq!(left.items.len(), 1);
    Ok(())
}

#[tokio::test]
async fn servers_that_share_a_cluster_take_turns_in_compacting() -> Result<(), Error> {
    let etcd = Etcd::start(1)?;
    let [a, b] = [
        EtcdStorage::open(options(&etcd, "/registry/")).await?,
        EtcdStorage::open(options(&etcd, "/registry/")).await?,
    ];
    let key = Key::new("/registry/a");
    let created = a.create(&key, "1".into(), None).await?;
    let first = a.compact_periodically(CompactionRound::default()).await?;
    assert_eq!(first.number, 1);
    assert_eq!(read(&etcd, "compact_rev_key")?, Some(("0".to_owned(), 1)));
    let lost = b.compact_periodically(CompactionRound::default()).await?;
    assert_eq!(lost.number, 1, "the other one was first");

    a.update(&key, "2".into(), created, None).await?;
    let second = a.compact_periodically(first).await?;
    assert_eq!(second.number, 2);
    assert_eq!(read(&etcd, "compact_rev_key")?, Some((first.revision.to_string(), 2)));
    b.current_revision().await?;
    assert_eq!(b.compacted_revision(), first.revision, "it is told to the others");
    for storage in [&a, &b] {
        let at = ListRequest { revision: Some(Revision(created.0 - 1)), ..list("/registry/") };
        let outcome = storage.get_list(at).await.map(|_| "a list");
        assert_eq!(outcome, Err(StorageError::Compacted { compacted: first.revision }));
    }
    let learned = b.compact_periodically(lost).await?;
    assert_eq!(learned.number, 2);
    // The first server is gone; the second continues from the revision that it has seen.
    let third = b.compact_periodically(learned).await?;
    assert_eq!(third.number, 3);
    assert_eq!(read(&etcd, "compact_rev_key")?, Some((learned.revision.to_string(), 3)));
    let late = a.compact_periodically(second).await?;
    assert_eq!(late.number, 3);
    Ok(())
}

#[tokio::test]
async fn what_is_beside_the_prefix_is_left_alone() -> Result<(), Error> {
    let etcd = Etcd::start(1)?;
    let storage = EtcdStorage::open(options(&etcd, "/registry/")).await?;
    let start = storage.current_revision().await?;
    let request = |prefix: &str| WatchRequest { prefix: prefix.to_owned(), after: start };
    let mut all = storage.watch(request("")).await?;
    put(&etcd, "/registry2/a", "1")?;
    put(&etcd, b"/registry/not \xff text", "1")?;
    let ours = put(&etcd, "/registry/a", "1")?;
    let others = put(&etcd, "/other", "1")?;
    assert_eq!(storage.current_revision().await?, others, "and does not wait for what does not come");
    let mut later = storage.watch(request("/registry/")).await?;
    for stream in [&mut all, &mut later] {
        let batch = next(stream).await?;
        assert!(
            matches!(batch.as_slice(), [StorageEvent::Write { revision, .. }] if *revision == ours),
            "{batch:?}"
        );
    }
    let names: Vec<_> =
        storage.get_list(list("/registry/")).await?.items.into_iter().map(|kv| kv.key).collect();
    assert_eq!(names, [Key::new("/registry/a")]);
    Ok(())
}

#[tokio::test]
async fn history_from_before_the_engine_comes_from_etcd() -> Result<(), Error> {
    let etcd = Etcd::start(1)?;
    let mut revisions = Vec::new();
    for object in 0..300 {
        // Events in pages and fragments: etcd sends at most about 1.5 MB at once.
        revisions.push(put(&etcd, format!("/registry/a/{object}"), &"x".repeat(20_000))?);
        put(&etcd, format!("/registry/b/{object}"), "1")?;
    }
    let storage = EtcdStorage::open(options(&etcd, "/registry/")).await?;
    let request = WatchRequest { prefix: "/registry/a/".to_owned(), after: Revision(1) };
    let mut stream = storage.watch(request).await?;
    let mut seen = Vec::new();
    let live = storage.create(&Key::new("/registry/a/live"), "1".into(), None).await?;
    revisions.push(live);
    while seen.last() != Some(&live) {
        for event in next(&mut stream).await? {
            if let StorageEvent::Write { revision, .. } = event {
                seen.push(revision);
            }
        }
    }
    assert_eq!(seen, revisions);
    Ok(())
}

/// With a member whose progress responses can be trusted, the engine watches its prefix only, and progress covers the
/// writes to other keys.
#[tokio::test]
async fn progress_is_asked_of_servers_that_can_be_trusted() -> Result<(), Error> {
    let etcd = Etcd::start(1)?;
    let trusting = EtcdOptions { trust_progress: true, ..options(&etcd, "/registry/") };
    let storage = EtcdStorage::open(trusting).await?;
    let start = storage.current_revision().await?;
    let request = WatchRequest { prefix: "/registry/".to_owned(), after: start };
    let mut live = storage.watch(request.clone()).await?;
    let others = put(&etcd, "/other", "1")?;
    storage.request_progress().await?;
    assert_eq!(next(&mut live).await?, [StorageEvent::Progress(others)]);
    assert_eq!(storage.current_revision().await?, others);

    // A watch of history without events of the prefix also ends by progress.
    let ours = storage.create(&Key::new("/registry/a"), "1".into(), None).await?;
    let trusting = EtcdOptions { trust_progress: true, ..options(&etcd, "/registry/") };
    let second = EtcdStorage::open(trusting).await?;
    let mut history = second.watch(WatchRequest { prefix: "/registry/b/".to_owned(), ..request }).await?;
    second.request_progress().await?;
    assert_eq!(next(&mut history).await?, [StorageEvent::Progress(ours)]);
    Ok(())
}

#[tokio::test]
async fn a_value_that_etcd_does_not_take_is_refused_with_its_words() -> Result<(), Error> {
    let etcd = Etcd::start(1)?;
    let storage = EtcdStorage::open(options(&etcd, "/registry/")).await?;
    for (bytes, words) in [
        (1_800_000, "etcdserver: request is too large"),
        (
            2_200_000,
            "rpc error: code = ResourceExhausted desc = trying to send message larger than max (2200",
        ),
    ] {
        match storage.create(&Key::new("/registry/a"), "x".repeat(bytes).into(), None).await {
            Err(WriteError::Storage(StorageError::TooLarge(error))) => {
                assert!(error.starts_with(words), "{error}");
            }
            other => return Err(format!("{other:?}").into()),
        }
    }
    Ok(())
}
