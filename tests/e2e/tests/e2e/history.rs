//! Tests that history can be read on every engine across a restart, and until it is compacted.

use crate::Result;
use pintle_e2e::{PATIENCE, config};
use pintle_harness::{Client, Config, Etcd, Server, wait_for};
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn create(client: &Client, name: &str) -> Result {
    let made = client.post(MAPS, &json!({"metadata": {"name": name}}))?;
    assert_eq!(made.status, 201, "{}", made.text());
    Ok(())
}

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

/// Reads the first page of four maps; then changes, deletes and creates maps behind it.
fn begin(client: &Client) -> Result<(String, String)> {
    for name in ["a", "b", "c", "d"] {
        create(client, name)?;
    }
    let page = client.get(&format!("{MAPS}?limit=2"))?.json()?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let patch = [("content-type", "application/merge-patch+json")];
    client.request("PATCH", &format!("{MAPS}/b"), &patch, br#"{"data":{"k":"v"}}"#)?;
    client.delete(&format!("{MAPS}/c"))?;
    create(client, "e")?;
    Ok((text(&page["metadata"]["resourceVersion"]), text(&page["metadata"]["continue"])))
}

fn watched(client: &Client, version: &str) -> Result<Vec<String>> {
    let mut watch = client.lines(&format!("{MAPS}?watch=1&resourceVersion={version}"))?;
    let mut events = Vec::new();
    for _ in 0..3 {
        let event = watch.next_json()?.ok_or("the watch ended")?;
        events.push(format!("{} {}", event["type"], event["object"]["metadata"]["name"]));
    }
    Ok(events)
}

fn past_survives_a_restart(config: Config) -> Result {
    let mut server = Server::start(config.flag("--etcd-compaction-interval=0"))?;
    let (version, token) = begin(&server.client()?)?;
    server.kill()?;
    server.restart()?;
    let client = server.client()?;
    let page = client.get(&format!("{MAPS}?limit=2&continue={token}"))?.json()?;
    assert_eq!((names(&page), &page["metadata"]["resourceVersion"]), (vec!["c", "d"], &json!(version)));
    let exact =
        client.get(&format!("{MAPS}?resourceVersion={version}&resourceVersionMatch=Exact"))?.json()?;
    assert_eq!(names(&exact), ["a", "b", "c", "d"]);
    let expected = ["\"MODIFIED\" \"b\"", "\"DELETED\" \"c\"", "\"ADDED\" \"e\""];
    assert_eq!(watched(&client, &version)?, expected);
    Ok(())
}

fn compacted_past_is_gone(config: Config) -> Result {
    let mut server = Server::start(config.flag("--etcd-compaction-interval=300ms"))?;
    let client = server.client()?;
    let (version, token) = begin(&client)?;
    let gone = |path: String| {
        wait_for("the compaction", PATIENCE, || {
            let answer = client.get(&path).ok()?;
            (answer.status == 410).then(|| answer.json().ok()).flatten()
        })
    };
    let list = gone(format!("{MAPS}?resourceVersion={version}&resourceVersionMatch=Exact"))?;
    assert_eq!(list["message"], "The resourceVersion for the provided list is too old.");
    let page = gone(format!("{MAPS}?limit=2&continue={token}"))?;
    let message = page["message"].as_str().ok_or("no message")?;
    assert!(
        message
            .starts_with("The provided continue parameter is too old to display a consistent list result.")
    );
    assert_eq!(page["reason"], "Expired");
    let token = page["metadata"]["continue"].as_str().ok_or("no token")?;
    let rest = client.get(&format!("{MAPS}?limit=2&continue={token}"))?.json()?;
    assert_eq!(names(&rest), ["d", "e"]);
    server.kill()?;
    server.restart()?;
    let mut watch = server.client()?.lines(&format!("{MAPS}?watch=1&resourceVersion={version}"))?;
    let event = watch.next_json()?.ok_or("the watch ended")?;
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)), "{event}");
    let told = event["object"]["message"].as_str().ok_or("no message")?;
    assert!(told.starts_with(&format!("too old resource version: {version} (")), "{told}");
    Ok(())
}

fn on(etcd: &Etcd) -> Result<Config> {
    Ok(config()?.flag(format!("--etcd-servers={}", etcd.urls())))
}

#[test]
fn the_past_survives_a_restart_of_an_embedded_store() -> Result {
    past_survives_a_restart(config()?)
}

#[test]
fn the_past_survives_a_restart_on_etcd() -> Result {
    past_survives_a_restart(on(&Etcd::start(1)?)?)
}

#[test]
fn the_compacted_past_of_an_embedded_store_is_gone() -> Result {
    compacted_past_is_gone(config()?)
}

#[test]
fn the_compacted_past_of_etcd_is_gone() -> Result {
    compacted_past_is_gone(on(&Etcd::start(1)?)?)
}
