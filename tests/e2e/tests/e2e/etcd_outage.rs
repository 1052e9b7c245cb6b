//! Tests a server during an outage of its etcd.

use crate::Result;
use pintle_e2e::{PATIENCE, config, variable};
use pintle_harness::{Etcd, Server, wait_for};
use serde_json::json;
use std::{
    process::Command,
    thread,
    time::{Duration, Instant},
};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[test]
fn a_server_outlives_its_etcd_and_its_watches_notice_nothing() -> Result {
    let mut etcd = Etcd::start(1)?;
    let server = Server::start(config()?.flag(format!("--etcd-servers={}", etcd.urls())))?;
    let client = server.client()?;
    let config_map =
        |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    let before = client.post(CONFIG_MAPS, &config_map("before"))?.json()?;
    let version = before["metadata"]["resourceVersion"].as_str().ok_or("no version")?;
    let mut watch = client.lines(&format!("{CONFIG_MAPS}?watch=1&resourceVersion={version}"))?;

    etcd.member_mut(0)?.stop()?;
    let report = wait_for("the checks to fail", PATIENCE, || {
        let report = client.get("/readyz?verbose").ok()?;
        let report = (report.status == 500).then(|| String::from_utf8_lossy(&report.body).into_owned())?;
        ["etcd", "etcd-readiness"]
            .iter()
            .all(|name| report.contains(&format!("[-]{name} failed")))
            .then_some(report)
    })?;
    assert!(!report.contains("127.0.0.1"), "what is wrong inside is for the log: {report}");
    // Reads that the cache may serve still succeed.
    let cached = client.get(&format!("{CONFIG_MAPS}/before?resourceVersion=0"))?;
    assert_eq!(cached.json()?, before);

    etcd.member_mut(0)?.restart()?;
    etcd.wait_ready()?;
    wait_for("the server to be ready", PATIENCE, || {
        client.get("/readyz").ok().filter(|response| response.status == 200)
    })?;
    assert_eq!(client.post(CONFIG_MAPS, &config_map("after"))?.status, 201);
    let event = watch.next_json()?.ok_or("the watch ended")?;
    assert_eq!(
        (event["type"].as_str(), event["object"]["metadata"]["name"].as_str()),
        (Some("ADDED"), Some("after"))
    );
    let names = client.get(CONFIG_MAPS)?.json()?;
    let names: Vec<_> = names["items"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|item| item["metadata"]["name"].clone())
        .collect();
    assert_eq!(names, ["after", "before"]);
    let metrics = String::from_utf8(client.get("/metrics")?.body)?;
    assert!(
        metrics.contains(r#"etcd_requests_total{group="",operation="create",resource="configmaps"}"#),
        "{metrics}"
    );
    Ok(())
}

/// Kube-apiserver ends a write after 34 seconds. Whether it happens is unknown.
#[test]
fn what_etcd_does_not_answer_ends_in_its_time() -> Result {
    const WRITE_LIMIT: Duration = Duration::from_secs(34);
    let etcd = Etcd::start(1)?;
    let server = Server::start(config()?.flag(format!("--etcd-servers={}", etcd.urls())))?;
    let client = server.client()?;
    let config_map =
        |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    assert_eq!(client.post(CONFIG_MAPS, &config_map("before"))?.status, 201);
    etcd.member(0)?.pause()?;
    let (late, took) = thread::scope(|scope| -> Result<_> {
        let late = scope.spawn(|| {
            let begun = Instant::now();
            client.post(CONFIG_MAPS, &config_map("late")).map(|answer| (answer, begun.elapsed()))
        });
        let mut watch = server.client()?.lines(&format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=2"))?;
        let event = watch.next_json()?.ok_or("no event")?;
        let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "context deadline exceeded", "reason": "InternalError", "code": 500});
        assert_eq!(event, json!({"type": "ERROR", "object": status}));
        assert_eq!(watch.next_json()?, None);
        late.join().map_err(|_| "the client panicked")?
    })?;
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "Timeout: request did not complete within requested timeout - context deadline exceeded",
        "reason": "Timeout", "details": {}, "code": 504});
    assert_eq!((late.status, late.json()?), (504, status));
    assert!((WRITE_LIMIT..WRITE_LIMIT + PATIENCE).contains(&took), "{took:?}");
    etcd.member(0)?.resume()?;
    wait_for("a write to succeed", PATIENCE, || {
        client.post(CONFIG_MAPS, &config_map("after")).ok().filter(|answer| answer.status == 201)
    })?;
    Ok(())
}

#[test]
fn flags_that_do_not_fit_end_the_server_with_a_reason() -> Result {
    let rows: &[(&[&str], &str)] = &[
        (&["--storage-backend=etcd3"], "--etcd-servers must be specified"),
        (
            &["--storage-backend=memory", "--etcd-servers=http://127.0.0.1:1"],
            "--etcd-servers is for --storage-backend=etcd3 only",
        ),
        (&["--etcd-servers=https://127.0.0.1:1"], "needs the file with its authority"),
        (&["--etcd-servers=https://127.0.0.1:1", "--etcd-cafile=/no/such/file"], "/no/such/file"),
        (&["--etcd-servers=ftp://127.0.0.1:1"], "its scheme is none of http, https, unix and unixs"),
    ];
    let directory = std::env::temp_dir().join(format!("pintle-flags-{}", std::process::id()));
    for (flags, reason) in rows {
        let output = Command::new(variable("PINTLE_SERVER")?)
            .arg("--data-dir")
            .arg(&directory)
            .args(["--bind-address=127.0.0.1", "--secure-port=0"])
            .args(*flags)
            .output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(reason), "{flags:?}: {said}");
    }
    std::fs::remove_dir_all(&directory)?;
    Ok(())
}
