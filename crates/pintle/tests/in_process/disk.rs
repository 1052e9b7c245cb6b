//! Tests a server whose disk fails: clients get errors, health checks fail, and acknowledged writes are kept.

use crate::harness::{PATIENCE, Server, options};
use pintle::StorageBackend;
use pintle_fault_vfs::{Call, Effect, Fault, FaultDisk};
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn start(dir: &Path) -> Server {
    let mut options = options(dir);
    options.storage_backend = StorageBackend::Embedded;
    let server = Server::start_in(options).await;
    // Wait for the writes of the server's own registration.
    until_health(&server, "/readyz", 200).await;
    server
}

async fn create(server: &Server, name: &str) -> (u16, String) {
    let answer = server.send(&format!("POST {MAPS}\n\n{{\"metadata\":{{\"name\":\"{name}\"}}}}")).await;
    (answer.status, answer.text().to_owned())
}

/// Reads a health endpoint until it returns the status.
async fn until_health(server: &Server, path: &str, status: u16) -> String {
    tokio::time::timeout(PATIENCE, async {
        loop {
            let answer = server.send(&format!("GET {path}")).await;
            if answer.status == status {
                return answer.text().to_owned();
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await
    .unwrap()
}

async fn names(server: &Server) -> Vec<String> {
    let list = server.send(&format!("GET {MAPS}")).await.json();
    let name = |item: &pintle_machinery::Value| item["metadata"]["name"].as_str().unwrap().to_owned();
    list["items"].as_array().unwrap().iter().map(name).filter(|name| name != "kube-root-ca.crt").collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_sync_ends_writing_until_the_restart() {
    let dir = tempfile::tempdir().unwrap();
    let disk = FaultDisk::new(&dir.path().join("store"));
    let server = start(dir.path()).await;
    assert_eq!(create(&server, "acknowledged").await.0, 201);
    disk.fail(Fault { call: Call::Sync, file: ".journal", after: 0, times: 1, effect: Effect::IoError });
    // A write of the server's own may hit the fault first; later writes are refused all the same.
    let (status, text) = create(&server, "doubtful").await;
    assert_eq!(status, 500, "{text}");
    assert!(text.contains("InternalError") && text.contains("stopped writing"), "{text}");
    assert!(disk.failed() > 0);
    // The disk works again, but the kernel may have dropped dirty pages.
    disk.heal();
    assert_eq!(create(&server, "refused").await.0, 500);
    assert_eq!(server.send(&format!("DELETE {MAPS}/acknowledged")).await.status, 500);
    for path in ["/readyz", "/livez", "/healthz"] {
        let text = until_health(&server, path, 500).await;
        assert!(text.contains("[-]etcd failed"), "{path}: {text}");
    }
    assert!(names(&server).await.contains(&"acknowledged".to_owned()), "what is there is read");
    server.stop().await;

    let server = start(dir.path()).await;
    let names = names(&server).await;
    assert!(
        names.contains(&"acknowledged".to_owned()) && !names.contains(&"refused".to_owned()),
        "{names:?}"
    );
    assert_eq!(create(&server, "refused").await.0, 201);
    until_health(&server, "/readyz", 200).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_writes_until_there_is_space() {
    let dir = tempfile::tempdir().unwrap();
    let disk = FaultDisk::new(&dir.path().join("store"));
    let server = start(dir.path()).await;
    assert_eq!(create(&server, "before").await.0, 201);
    disk.fail(Fault::every(Call::Write, Effect::DiskFull));
    let (status, text) = create(&server, "during").await;
    assert_eq!(status, 500, "{text}");
    assert!(text.contains("the disk is full"), "{text}");
    // The readiness check, which only `/readyz` has, runs on its own.
    let text = until_health(&server, "/healthz", 500).await;
    assert!(text.contains("[-]etcd failed"), "{text}");
    assert_eq!(names(&server).await, ["before"]);
    disk.heal();
    until_health(&server, "/readyz", 200).await;
    assert_eq!(create(&server, "during").await.0, 201);
    server.stop().await;
    let server = start(dir.path()).await;
    assert_eq!(names(&server).await, ["before", "during"]);
    server.stop().await;
}

/// Writers create, update and delete while the disk fills again and again, in the middle of a write and before one.
/// A watch sees each acknowledged write, in order, and no refused one; the next start finds what was acknowledged.
#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_fills_during_churn_loses_nothing_that_was_acknowledged() {
    const WRITERS: usize = 4;
    const ROUNDS: usize = 60;
    let dir = tempfile::tempdir().unwrap();
    let disk = FaultDisk::new(&dir.path().join("store"));
    let server = Arc::new(start(dir.path()).await);
    let path = format!("{MAPS}?watch=1&resourceVersion=0&fieldSelector=metadata.name!=kube-root-ca.crt");
    let mut watch = server.watch(&path, &[]).await;
    let writing = Arc::new(AtomicUsize::new(WRITERS));
    let writers = (0..WRITERS).map(|writer| {
        let (server, writing) = (Arc::clone(&server), Arc::clone(&writing));
        tokio::spawn(async move {
            let mut acknowledged = Vec::new();
            for round in 0..ROUNDS {
                let name = format!("m{writer}-{round}");
                let body = format!("{{\"metadata\":{{\"name\":\"{name}\"}},\"data\":{{\"a\":\"{round}\"}}}}");
                for (request, event) in [
                    (format!("POST {MAPS}\n\n{body}"), "ADDED"),
                    (format!("PUT {MAPS}/{name}\n\n{}", body.replace("\"a\"", "\"b\"")), "MODIFIED"),
                    (format!("DELETE {MAPS}/{name}"), "DELETED"),
                ] {
                    if event == "DELETED" && round % 3 == 0 {
                        continue;
                    }
                    let answer = server.send(&request).await;
                    match answer.status {
                        200 | 201 => acknowledged.push((event.to_owned(), name.clone())),
                        404 => {}
                        500 => assert!(answer.text().contains("the disk is full"), "{}", answer.text()),
                        status => panic!("{status}: {}", answer.text()),
                    }
                }
            }
            writing.fetch_sub(1, Ordering::AcqRel);
            acknowledged
        })
    });
    let writers: Vec<_> = writers.collect();
    let mut fills = 0;
    while writing.load(Ordering::Acquire) > 0 {
        let effect = if fills % 2 == 0 { Effect::DiskFull } else { Effect::ShortWrite };
        let failed = disk.failed();
        disk.fail(Fault { call: Call::Write, file: ".journal", after: 5 + fills % 7, times: 3, effect });
        fills += 1;
        while disk.failed() < failed + 3 && writing.load(Ordering::Acquire) > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        disk.heal();
        until_health(&server, "/readyz", 200).await;
    }
    let mut acknowledged = Vec::new();
    for writer in writers {
        acknowledged.push(writer.await.unwrap());
    }
    assert!(disk.failed() > 0, "the disk was full at times");
    assert!(acknowledged.iter().all(|writes| !writes.is_empty()), "and at times it was not");

    let last = server.send(&format!("POST {MAPS}\n\n{{\"metadata\":{{\"name\":\"last\"}}}}")).await;
    assert_eq!(last.status, 201, "{}", last.text());
    let mut seen = vec![Vec::new(); WRITERS];
    loop {
        let event: pintle_machinery::Value = serde_json::from_str(&watch.next().await.unwrap()).unwrap();
        let name = event["object"]["metadata"]["name"].as_str().unwrap().to_owned();
        if name == "last" {
            break;
        }
        let writer: usize = name[1..].split('-').next().unwrap().parse().unwrap();
        seen[writer].push((event["type"].as_str().unwrap().to_owned(), name));
    }
    assert_eq!(seen, acknowledged);

    let mut expected = vec!["last".to_owned()];
    for (event, name) in acknowledged.iter().flatten() {
        match event.as_str() {
            "ADDED" => expected.push(name.clone()),
            "DELETED" => expected.retain(|other| other != name),
            _ => {}
        }
    }
    expected.sort();
    drop(watch);
    Arc::into_inner(server).unwrap().stop().await;
    let server = start(dir.path()).await;
    assert_eq!(names(&server).await, expected);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_does_not_start_on_a_disk_that_it_cannot_write() {
    let dir = tempfile::tempdir().unwrap();
    start(dir.path()).await.stop().await;
    let disk = FaultDisk::new(&dir.path().join("store"));
    let mut unwritable = options(dir.path());
    unwritable.storage_backend = StorageBackend::Embedded;
    for (call, effect) in [
        (Call::Open, Effect::ReadOnly),
        (Call::Open, Effect::IoError),
        (Call::Write, Effect::ReadOnly),
        (Call::Sync, Effect::IoError),
    ] {
        disk.fail(Fault::every(call, effect));
        let started = pintle::start(unwritable.clone()).await;
        let Err(error) = started else { panic!("{call:?} fails with {effect:?}, and the server starts") };
        assert!(error.to_string().contains(&dir.path().join("store").display().to_string()), "{error}");
        disk.heal();
    }
    start(dir.path()).await.stop().await;
}
