//! Injects faults: members die, leaders change, networks fail. No acknowledged write is lost, no read is wrong, and no
//! watch misses an event or gets one twice.

use pintle_cacher::{CacherError, Freshness};
use pintle_etcd_tests::{Load, Network, PREFIX, Proxy, options, put, read, start_cacher};
use pintle_harness::{Error, Etcd, EtcdConfig, wait_for};
use pintle_storage::{
    EtcdOptions, EtcdStorage, Key, Storage, StorageError, StorageEvent, WatchRequest, WriteError,
};
use serde_json::json;
use std::{sync::Arc, time::Duration};
use tokio::time::{sleep, timeout};

/// An engine below the prefix that the load writes to.
async fn open(options: EtcdOptions) -> Result<Arc<dyn Storage>, Error> {
    Ok(Arc::new(EtcdStorage::open(options).await?))
}

/// The members are of etcd 3.4: a member of 3.5.0 to 3.5.2 that is killed under load may lose what it had applied
/// (<https://github.com/etcd-io/etcd/issues/13766>).
#[tokio::test(flavor = "multi_thread")]
async fn old_etcd_members_die_and_leaders_change_under_load() -> Result<(), Error> {
    let mut etcd = Etcd::launch(EtcdConfig::old()?.with_members(3))?;
    let load = Load::start(vec![
        open(options(&etcd, "/registry/")).await?,
        open(options(&etcd, "/registry/")).await?,
    ])
    .await?;
    load.progress(200).await?;

    let leader = etcd.leader()?;
    etcd.move_leader((leader + 1) % 3)?;
    load.progress(200).await?;

    // The member that serves both engines is killed and restarted.
    etcd.member_mut(0)?.kill()?;
    load.progress(200).await?;
    etcd.member_mut(0)?.restart()?;
    etcd.wait_ready()?;
    load.progress(100).await?;

    let leader = etcd.leader()?;
    etcd.member_mut(leader)?.kill()?;
    load.progress(200).await?;
    etcd.member_mut(leader)?.restart()?;
    etcd.wait_ready()?;

    // Each member in turn keeps its connections and sends no responses. It is no leader then, since a leader that was
    // paused may answer with an older state (https://github.com/etcd-io/etcd/issues/20418).
    for member in 0..3 {
        if etcd.leader()? == member {
            etcd.move_leader((member + 1) % 3)?;
        }
        etcd.member(member)?.pause()?;
        load.progress(50).await?;
        etcd.member(member)?.resume()?;
        load.progress(50).await?;
    }

    // There is no majority for a while.
    let leader = etcd.leader()?;
    for other in [(leader + 1) % 3, (leader + 2) % 3] {
        etcd.member_mut(other)?.kill()?;
    }
    sleep(Duration::from_millis(1500)).await;
    for other in [(leader + 1) % 3, (leader + 2) % 3] {
        etcd.member_mut(other)?.restart()?;
    }
    etcd.wait_ready()?;
    load.progress(100).await?;
    println!("{:?}", load.finish().await?);
    Ok(())
}

/// Without faults, the load fails no call, and its keys with a time to live have leases.
#[tokio::test(flavor = "multi_thread")]
async fn no_call_fails_without_a_fault() -> Result<(), Error> {
    let etcd = Etcd::start(1)?;
    let load = Load::start(vec![
        open(options(&etcd, "/registry/")).await?,
        open(options(&etcd, "/registry/")).await?,
    ])
    .await?;
    load.progress(500).await?;
    let leases = etcd.member(0)?.call("/v3/lease/leases", &json!({}))?;
    assert!(leases["leases"].as_array().is_some_and(|leases| !leases.is_empty()), "{leases}");
    let report = load.finish().await?;
    assert_eq!((report.failures, report.uncertain), (0, 0), "{report:?}");
    assert!(report.reads > 100, "{report:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_network_is_cut_reset_and_silent_under_load() -> Result<(), Error> {
    let etcd = Etcd::start(1)?;
    let port = etcd.member(0)?.port();
    // Two proxies of one member, which act like two members with the same state.
    let ways = [Proxy::before(port).await?, Proxy::before(port).await?];
    let through_both = EtcdOptions::new(ways.iter().map(Proxy::url), "/registry/");
    let load =
        Load::start(vec![open(through_both).await?, open(options(&etcd, "/registry/")).await?]).await?;
    load.progress(100).await?;
    for network in [Network::Cut, Network::Reset, Network::Silent] {
        for way in &ways {
            way.set(network);
            load.progress(100).await?;
            sleep(Duration::from_millis(300)).await;
            way.set(Network::Whole);
            load.progress(100).await?;
        }
    }
    // Both proxies at once, so that there is no working connection.
    for network in [Network::Cut, Network::Silent] {
        ways.iter().for_each(|way| way.set(network));
        sleep(Duration::from_millis(700)).await;
        ways.iter().for_each(|way| way.set(Network::Whole));
        load.progress(100).await?;
    }
    println!("{:?}", load.finish().await?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn old_etcd_restarts_under_load() -> Result<(), Error> {
    let mut etcd = Etcd::launch(EtcdConfig::old()?)?;
    let load = Load::start(vec![open(options(&etcd, "/registry/")).await?]).await?;
    for _ in 0..3 {
        load.progress(100).await?;
        etcd.member_mut(0)?.kill()?;
        sleep(Duration::from_millis(200)).await;
        etcd.member_mut(0)?.restart()?;
        etcd.wait_ready()?;
    }
    load.progress(100).await?;
    println!("{:?}", load.finish().await?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_that_compaction_overtakes_ends_and_begins_anew() -> Result<(), Error> {
    let etcd = Etcd::start(1)?;
    let member = etcd.member(0)?;
    let way = Proxy::before(member.port()).await?;
    let storage = open(EtcdOptions::new([way.url()], "/registry/")).await?;
    let key = Key::new(format!("{PREFIX}a"));
    let first = storage.create(&key, "1".into(), None).await?;
    let request = |after| WatchRequest { prefix: PREFIX.to_owned(), after };
    let mut stream = storage.watch(request(first)).await?;

    way.set(Network::Cut);
    let mut last = first;
    for _ in 0..50 {
        last = put(&etcd, format!("{PREFIX}a"), "2")?;
    }
    member.call("/v3/kv/compaction", &json!({"revision": last.0.to_string()}))?;
    way.set(Network::Whole);

    let batch = timeout(Duration::from_secs(20), stream.next_batch()).await?.ok_or("no error")?;
    let compacted = StorageEvent::Error(StorageError::Compacted { compacted: last });
    assert_eq!(batch.last(), Some(&compacted), "{batch:?}");
    assert_eq!(stream.next_batch().await, None);
    let outcome = storage.watch(request(first)).await.map(|_| "a watch");
    assert_eq!(outcome, Err(StorageError::Compacted { compacted: last }));
    let mut stream = storage.watch(request(last)).await?;
    let next = storage.update(&key, "3".into(), last, None).await?;
    let batch = timeout(Duration::from_secs(20), stream.next_batch()).await?.ok_or("no event")?;
    assert!(
        matches!(batch.as_slice(), [StorageEvent::Write { revision, .. }] if *revision == next),
        "{batch:?}"
    );
    Ok(())
}

/// etcd assigns the revisions after the restored one again: a client that has seen the old ones would miss the new
/// writes with the same revisions.
#[tokio::test(flavor = "multi_thread")]
async fn a_restored_etcd_ends_watches_and_is_followed_from_where_it_is() -> Result<(), Error> {
    let mut etcd = Etcd::start(1)?;
    let storage = open(options(&etcd, "/registry/")).await?;
    let key = Key::new(format!("{PREFIX}a"));
    let kept = storage.create(&key, "1".into(), None).await?;
    etcd.member_mut(0)?.stop()?;
    etcd.member_mut(0)?.keep_data()?;
    etcd.member_mut(0)?.restart()?;
    etcd.wait_ready()?;
    let mut last = kept;
    for _ in 0..5 {
        last = storage.update(&key, "2".into(), last, None).await?;
    }
    let cacher = start_cacher(&storage).await?;
    let (found, revision) = cacher.get(&key, Freshness::Consistent).await?;
    assert_eq!((found.map(|object| object.revision()), revision), (Some(last), last));
    let request = |after| WatchRequest { prefix: PREFIX.to_owned(), after };
    let mut stream = storage.watch(request(last)).await?;

    etcd.member_mut(0)?.stop()?;
    etcd.member_mut(0)?.restore_data()?;
    etcd.member_mut(0)?.restart()?;
    etcd.wait_ready()?;
    let batch = timeout(Duration::from_secs(20), stream.next_batch()).await?.ok_or("no error")?;
    let gone = StorageEvent::Error(StorageError::Compacted { compacted: kept });
    assert_eq!(batch.last(), Some(&gone), "{batch:?}");

    assert_eq!(storage.current_revision().await?, kept);
    let mut stream = storage.watch(request(kept)).await?;
    let next = storage.update(&key, "3".into(), kept, None).await?;
    assert!(next <= last, "the revision is given out again");
    let batch = timeout(Duration::from_secs(20), stream.next_batch()).await?.ok_or("no event")?;
    assert!(
        matches!(batch.as_slice(), [StorageEvent::Write { revision, .. }] if *revision == next),
        "{batch:?}"
    );
    let (found, revision) = cacher.get(&key, Freshness::Consistent).await?;
    assert_eq!((found.map(|object| object.revision()), revision), (Some(next), next));
    let future = cacher.get(&key, Freshness::NotOlderThan(last)).await;
    assert!(matches!(future, Err(CacherError::TooLargeResourceVersion { .. })), "{future:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn caches_follow_while_others_compact() -> Result<(), Error> {
    let etcd = Etcd::start(1)?;
    let member = etcd.member(0)?;
    let load = Load::start(vec![open(options(&etcd, "/registry/")).await?]).await?;
    for _ in 0..10 {
        load.progress(50).await?;
        let revision = member.status()?["header"]["revision"].clone();
        member.call("/v3/kv/compaction", &json!({"revision": revision, "physical": true}))?;
    }
    println!("{:?}", load.finish().await?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_whose_answer_is_lost_is_not_made_again() -> Result<(), Error> {
    let etcd = Etcd::start(1)?;
    let way = Proxy::before(etcd.member(0)?.port()).await?;
    let storage = open(EtcdOptions::new([way.url()], "/registry/")).await?;
    let key = Key::new("/registry/a");
    let first = storage.create(&key, "1".into(), None).await?;

    way.set(Network::Deaf);
    let update = {
        let (storage, key) = (storage.clone(), key.clone());
        tokio::spawn(async move { storage.update(&key, "2".into(), first, None).await })
    };
    let written = || read(&etcd, key.as_str()).ok().filter(|pair| *pair == Some(("2".to_owned(), 2)));
    #[expect(clippy::disallowed_methods, reason = "a worker of the test's own")]
    tokio::task::block_in_place(|| wait_for("the write", Duration::from_secs(10), written))?;
    way.set(Network::Cut);
    let outcome = update.await?;
    // In the words of etcd's own client, as the failure may reach users.
    let is_cut = |text: &str| text.starts_with("rpc error: code = Unavailable");
    assert!(
        matches!(&outcome, Err(WriteError::Storage(StorageError::Etcd(text))) if is_cut(text)),
        "{outcome:?}"
    );

    way.set(Network::Whole);
    let kv = storage.get(&key).await?.kv.ok_or("the key is gone")?;
    assert_eq!(&kv.value[..], b"2");
    assert_eq!(read(&etcd, key.as_str())?, Some(("2".to_owned(), 2)));
    Ok(())
}
