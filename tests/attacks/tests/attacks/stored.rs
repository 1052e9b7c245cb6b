//! Stores objects with long lists and maps, and writes them again by every verb and patch type.
//!
//! Validation refuses most of what the sweep writes before anything else sees it. Here the server's own answers to
//! short lists tell how to make them valid ([`Repair`]), so that long ones reach the comparison of an object with
//! the stored one, the merges of patches and managed fields, admission and storage.

use crate::{
    Result,
    requests::{Requests, Subject},
    sweep::Sweep,
};
use pintle_attacks::{Fill, Repair, Spot, body_with, value_from};
use serde_json::{Value, json};
use std::{collections::HashSet, env};

const JSON: &str = "application/json";
const PODS: &str = "/api/v1/namespaces/default/pods?dryRun=All";

/// The number of entries of a list of which the server tells what is wrong.
const SHORT: usize = 3;
/// The number of answers to learn from.
const LESSONS: usize = 40;

/// An accepted object, and how to make others like it.
struct Stored<'a> {
    subject: &'a Subject,
    spot: &'a Spot,
    fill: Fill,
    repair: Repair,
    /// The size of the list or map.
    bytes: usize,
    /// The resource version of the object that is there.
    version: Value,
}

impl Stored<'_> {
    /// The object with entries that are numbered from `first`.
    fn body(&self, first: usize) -> Value {
        let value = value_from(self.spot, self.fill, self.bytes, first);
        let mut body = body_with(&self.subject.base, self.spot, value);
        body["metadata"]["name"] = json!(self.subject.name);
        self.repair.make(&mut body);
        body["metadata"]["resourceVersion"] = self.version.clone();
        body
    }

    /// How the list or map is stored: by the creation of the object, or as the status of one that is there.
    fn way(&self) -> (&'static str, String) {
        let kind = &self.subject.kind;
        if is_status(self.subject) { ("PUT", kind.path(&self.subject.name)) } else { ("POST", kind.path("")) }
    }

    /// Makes room for the object: removes one of the same name, and creates the one whose status it is.
    fn prepare(&mut self, client: &mut Requests) -> Result {
        let mut kind = self.subject.kind.clone();
        kind.resource = kind.resource.trim_end_matches("/status").to_owned();
        client.send("DELETE", &kind.path(&self.subject.name), JSON, &json!({"gracePeriodSeconds": 0}))?;
        if is_status(self.subject) {
            let mut body = self.subject.base.clone();
            body["metadata"]["name"] = json!(self.subject.name);
            let created = client.send("POST", &kind.path(""), JSON, &body)?.json()?;
            self.version = created["metadata"]["resourceVersion"].clone();
        }
        Ok(())
    }

    /// Changes a short object until it is accepted.
    fn learn(&mut self, client: &mut Requests) -> Result<bool> {
        let (method, path) = self.way();
        self.bytes = value_from(self.spot, self.fill, 100_000, 0)
            .as_array()
            .and_then(|items| items.first())
            .map_or(60, |item| SHORT * (item.to_string().len() + 2));
        let mut refusal = String::new();
        for _ in 0..LESSONS {
            let answer = client.send(method, &format!("{path}?dryRun=All"), JSON, &self.body(0))?;
            if matches!(answer.status, 200 | 201) {
                return Ok(true);
            }
            refusal = answer.text();
            if answer.status != 422 || !self.repair.learn(&answer.json()?) {
                break;
            }
        }
        if env::var_os("PINTLE_SWEEP_LOG").is_some() {
            println!("not stored: {} {:?}: {refusal}", self.spot.owner(), self.fill);
        }
        Ok(false)
    }

    /// Stores the longest list or map that is accepted, up to a size in bytes.
    fn store(&mut self, client: &mut Requests, most: usize) -> Result<bool> {
        let (method, path) = self.way();
        let shortest = self.bytes;
        self.bytes = most;
        while self.bytes > shortest {
            let what = format!("storing {} {:?}: {method} {path}", self.spot.owner(), self.fill);
            let answer = client.measure(&what, method, &path, JSON, &self.body(0))?;
            if let Some(stored) = answer.filter(|answer| matches!(answer.status, 200 | 201)) {
                self.version = stored.json()?["metadata"]["resourceVersion"].clone();
                return Ok(true);
            }
            self.bytes /= 2;
        }
        Ok(false)
    }

    /// Writes the stored object with other entries, and the same ones, then deletes it.
    fn write_again(&self, client: &mut Requests, every_change: bool) -> Result {
        let what = format!("stored {} {:?} of {} bytes", self.spot.owner(), self.fill, self.bytes);
        let changes = [(" with others", 1_000_000), (" with some others", 100), ("", 0)];
        for (change, first) in changes.into_iter().take(if every_change { 3 } else { 1 }) {
            let what = format!("{what}{change}");
            client.write(self.subject, &what, self.body(first), &self.spot.pointer(), true)?;
        }
        let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        client.measure(&format!("{what}: a pod"), "POST", PODS, JSON, &pod)?;
        let path = self.subject.kind.path(&self.subject.name);
        let path = path.trim_end_matches("/status");
        client.measure(
            &format!("{what}: delete"),
            "DELETE",
            path,
            JSON,
            &json!({"gracePeriodSeconds": 0}),
        )?;
        Ok(())
    }
}

fn is_status(subject: &Subject) -> bool {
    subject.kind.resource.ends_with("/status")
}

#[test]
fn no_stored_list_or_map_makes_a_request_expensive() -> Result {
    let sweep = Sweep::from_environment();
    let mut client = Requests::start(sweep.bound)?;
    // Half of what the sweep sends: there are as many bytes in the stored object.
    let bytes = sweep.bytes / 2;
    let (mut seen, mut tried, mut stored) = (HashSet::new(), 0, 0);
    for mut subject in client.subjects()? {
        if !is_status(&subject) && (subject.kind.resource.contains('/') || !subject.kind.has("get")) {
            continue;
        }
        let has_any_name = subject.name == "base";
        let spots = std::mem::take(&mut subject.spots);
        for spot in spots.iter().filter(|spot| !sweep.skips(spot, &mut seen)) {
            for &fill in &sweep.fills {
                tried += 1;
                if has_any_name {
                    subject.name = format!("stored{tried}");
                }
                let repair = Repair::new(subject.schema);
                let mut object =
                    Stored { subject: &subject, spot, fill, repair, bytes: 0, version: Value::Null };
                object.prepare(&mut client)?;
                if object.learn(&mut client)? && object.store(&mut client, bytes)? {
                    stored += 1;
                    object.write_again(&mut client, sweep.every_way)?;
                }
            }
        }
    }
    println!("{stored} of {tried} lists and maps were stored");
    let most_are_expected = sweep.fills == [Fill::Distinct];
    assert!(
        !most_are_expected || stored * 4 >= tried * 3,
        "only {stored} of {tried} lists and maps could be stored"
    );
    client.report()
}
