//! Tests `--etcd-servers-overrides`: resources in stores of their own.

use crate::Result;
use base64::{Engine, engine::general_purpose::STANDARD};
use pintle_e2e::{PATIENCE, config};
use pintle_harness::{Client, Etcd, Server, wait_for};
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// The keys below a prefix, each with its value and the revision of its last write.
fn stored(etcd: &Etcd, prefix: &str) -> Result<Vec<(String, Vec<u8>, String)>> {
    let mut end = prefix.as_bytes().to_vec();
    *end.last_mut().unwrap() += 1;
    let request = json!({"key": STANDARD.encode(prefix), "range_end": STANDARD.encode(end)});
    let answer = etcd.member(0)?.call("/v3/kv/range", &request)?;
    let pairs = answer["kvs"].as_array().cloned().unwrap_or_default();
    pairs
        .iter()
        .map(|pair| {
            let bytes = |name: &str| STANDARD.decode(pair[name].as_str().unwrap_or_default());
            let revision = pair["mod_revision"].as_str().unwrap_or_default().to_owned();
            Ok((String::from_utf8(bytes("key")?)?, bytes("value")?, revision))
        })
        .collect()
}

fn create(client: &Client, path: &str, body: &Value) -> Result<Value> {
    let made = client.post(path, body)?;
    assert_eq!(made.status, 201, "{}", made.text());
    made.json()
}

fn start(maps: &Etcd, events: &Etcd) -> Result<Server> {
    let (maps, events) = (maps.urls(), events.urls());
    // Events are named by the core group, under which they are stored.
    Server::start(
        config()?
            .flag(format!("--etcd-servers-overrides=/configmaps#{maps},/events#{events}"))
            .flag(format!("--etcd-servers-overrides=events.k8s.io/events#{maps},apps/deployments#{maps}"))
            .flag("--etcd-db-metric-poll-interval=100ms"),
    )
}

#[test]
fn overridden_resources_live_in_their_own_etcd() -> Result {
    let (maps, mut events) = (Etcd::start(1)?, Etcd::start(1)?);
    let mut server = start(&maps, &events)?;
    let client = server.client()?;
    let made = create(&client, MAPS, &json!({"metadata": {"name": "a"}, "data": {"k": "v"}}))?;
    create(&client, "/api/v1/namespaces/default/secrets", &json!({"metadata": {"name": "s"}}))?;
    let event = json!({
        "metadata": {"name": "e"}, "regarding": {"namespace": "default"}, "eventTime": "2024-01-01T00:00:00.000000Z",
        "reportingController": "c", "reportingInstance": "i", "action": "a", "reason": "r", "type": "Normal",
    });
    create(&client, "/apis/events.k8s.io/v1/namespaces/default/events", &event)?;

    let in_maps = stored(&maps, "/registry/")?;
    let (key, value, revision) =
        in_maps.iter().find(|(key, ..)| key == "/registry/configmaps/default/a").ok_or("no such key")?;
    assert!(value.starts_with(b"k8s\0"), "{key} is no protobuf");
    assert_eq!(made["metadata"]["resourceVersion"], *revision);
    let of_maps =
        |key: &str| key.starts_with("/registry/configmaps/") || key.starts_with("/registry/deployments/");
    assert!(in_maps.iter().all(|(key, ..)| of_maps(key)), "{in_maps:?}");
    let in_events: Vec<String> = stored(&events, "/registry/")?.into_iter().map(|(key, ..)| key).collect();
    assert_eq!(in_events, ["/registry/events/default/e"]);

    let log = server.log()?;
    assert!(log.contains("has no effect: nothing is stored as events.events.k8s.io"), "{log}");
    assert!(!log.contains("has no effect: nothing is stored as configmaps"), "{log}");

    // Writes of other resources do not change the list versions of these.
    let list = client.get(MAPS)?.json()?;
    let version = list["metadata"]["resourceVersion"].as_str().ok_or("no version")?.to_owned();
    for round in 0..5 {
        let name = format!("s{round}");
        create(&client, "/api/v1/namespaces/default/secrets", &json!({"metadata": {"name": name}}))?;
    }
    let list = client.get(MAPS)?.json()?;
    assert_eq!(list["metadata"]["resourceVersion"], version);
    let mut watch = client.lines(&format!("{MAPS}?watch=1&resourceVersion={version}"))?;
    create(&client, MAPS, &json!({"metadata": {"name": "b"}}))?;
    let event = watch.next_json()?.ok_or("the watch ended")?;
    assert_eq!((&event["type"], &event["object"]["metadata"]["name"]), (&json!("ADDED"), &json!("b")));

    let checks = client.get("/readyz?verbose")?.text();
    for name in [
        "etcd",
        "etcd-override-0",
        "etcd-override-1",
        "etcd-override-readiness-0",
        "etcd-override-readiness-1",
    ] {
        assert!(checks.contains(&format!("[+]{name} ok")), "{checks}");
    }
    assert!(!checks.contains("etcd-override-2"), "{checks}");
    wait_for("the sizes of three stores", PATIENCE, || {
        let metrics = client.get("/metrics").ok()?.text();
        let has = |number: usize| {
            metrics.contains(&format!("apiserver_storage_size_bytes{{storage_cluster_id=\"etcd-{number}\"}}"))
        };
        (has(0) && has(1) && has(2)).then_some(())
    })?;

    // After a restart every object is in its store. An open watch would hold the server for a minute.
    drop(watch);
    server.terminate()?;
    server.wait_for_end()?;
    server.restart()?;
    let client = server.client()?;
    assert_eq!(client.get(&format!("{MAPS}/a"))?.json()?["data"]["k"], "v");
    assert_eq!(client.get("/api/v1/namespaces/default/events/e")?.status, 200);
    assert_eq!(client.get("/api/v1/namespaces/default/secrets/s")?.status, 200);

    // An unavailable store is reported, and the others are served.
    events.member_mut(0)?.kill()?;
    wait_for("the check to fail", PATIENCE, || {
        let health = client.get("/livez?verbose").ok()?;
        (health.status == 500 && health.text().contains("[-]etcd-override-1 failed")).then_some(())
    })?;
    assert_eq!(client.get(&format!("{MAPS}/a"))?.status, 200);
    create(&client, MAPS, &json!({"metadata": {"name": "c"}}))?;
    create(&client, "/api/v1/namespaces/default/secrets", &json!({"metadata": {"name": "last"}}))?;
    Ok(())
}
