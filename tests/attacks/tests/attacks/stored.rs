//! Stores objects with long lists and maps, and writes them again by every verb and patch type.
//!
//! Validation refuses most of what the sweep writes before anything else sees it. Here the server's own answers to
//! short lists tell how to make them valid ([`Repair`]), so that long ones reach the comparison of an object with
//! the stored one, the merges of patches and managed fields, admission and storage.

use crate::{
    Result,
    requests::{Requests, Subject},
    sweep::names,
};
use pintle_attacks::{Fill, Repair, Spot, Sweep, body_with, value_from};
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
    name: String,
    /// The lists and maps to fill.
    chosen: Vec<(&'a Spot, Fill)>,
    /// The size of each list and map in bytes; a few entries while there is none.
    bytes: Option<usize>,
    repair: Repair,
    /// The resource version of the object that is there.
    version: Value,
}

impl<'a> Stored<'a> {
    /// Nothing stored yet. The object is named after a number if its kind accepts any name.
    fn new(subject: &'a Subject, number: usize, chosen: Vec<(&'a Spot, Fill)>) -> Stored<'a> {
        let name = if subject.name == "base" { format!("stored{number}") } else { subject.name.clone() };
        let repair = Repair::new(subject.schema);
        Stored { subject, name, chosen, bytes: None, repair, version: Value::Null }
    }

    /// The object with entries that are numbered from `first`.
    fn body(&self, first: usize) -> Value {
        let mut body = self.subject.base.clone();
        for &(spot, fill) in &self.chosen {
            let bytes = self.bytes.unwrap_or_else(|| {
                let some = value_from(spot, fill, 100_000, 0);
                let item = some.as_array().and_then(|items| items.first());
                item.map_or(60, |item| SHORT * (item.to_string().len() + 2))
            });
            body = body_with(&body, spot, value_from(spot, fill, bytes, first));
        }
        body["metadata"]["name"] = json!(self.name);
        self.repair.make(&mut body);
        body["metadata"]["resourceVersion"] = self.version.clone();
        body
    }

    /// How the list or map is stored: by the creation of the object, or as the status of one that is there.
    fn way(&self) -> (&'static str, String) {
        let kind = &self.subject.kind;
        if is_status(self.subject) { ("PUT", kind.path(&self.name)) } else { ("POST", kind.path("")) }
    }

    /// Makes room for the object: removes one of the same name, and creates the one whose status it is.
    fn prepare(&mut self, client: &mut Requests) -> Result {
        let mut kind = self.subject.kind.clone();
        kind.resource = kind.resource.trim_end_matches("/status").to_owned();
        client.send("DELETE", &kind.path(&self.name), JSON, &json!({"gracePeriodSeconds": 0}))?;
        if is_status(self.subject) {
            let mut body = self.subject.base.clone();
            body["metadata"]["name"] = json!(self.name);
            let created = client.send("POST", &kind.path(""), JSON, &body)?.json()?;
            self.version = created["metadata"]["resourceVersion"].clone();
        }
        Ok(())
    }

    /// Changes a short object until it is accepted.
    fn learn(&mut self, client: &mut Requests) -> Result<bool> {
        let (method, path) = self.way();
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
            println!("not stored: {}: {refusal}", names(&self.chosen));
        }
        Ok(false)
    }

    /// Stores the longest lists and maps that are accepted, up to a size in bytes of all together.
    fn store(&mut self, client: &mut Requests, most: usize) -> Result<bool> {
        /// The fewest bytes of a list: a few entries.
        const LEAST: usize = 200;
        let (method, path) = self.way();
        let mut bytes = most / self.chosen.len();
        while bytes > LEAST {
            self.bytes = Some(bytes);
            let what = format!("storing {}: {method} {path}", names(&self.chosen));
            let answer = client.measure(&what, method, &path, JSON, &self.body(0))?;
            if let Some(stored) = answer.filter(|answer| matches!(answer.status, 200 | 201)) {
                self.version = stored.json()?["metadata"]["resourceVersion"].clone();
                return Ok(true);
            }
            bytes /= 2;
        }
        Ok(false)
    }

    /// Writes the stored object with other entries, and the same ones, then deletes it.
    fn write_again(&self, client: &mut Requests, every_change: bool) -> Result {
        let bytes = self.bytes.unwrap_or_default();
        let what = format!("stored {} of {bytes} bytes each", names(&self.chosen));
        let changes = [(" with others", 1_000_000), (" with some others", 100), ("", 0)];
        for (change, first) in changes.into_iter().take(if every_change { 3 } else { 1 }) {
            let what = format!("{what}{change}");
            client.write(
                &self.subject.kind,
                &self.name,
                &what,
                self.body(first),
                &self.chosen[0].0.pointer(),
                true,
            )?;
        }
        let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        client.measure(&format!("{what}: a pod"), "POST", PODS, JSON, &pod)?;
        let path = self.subject.kind.path(&self.name);
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

/// Stores objects of each kind, with the lists and maps that `choose` names, and writes them again. The numbers of objects
/// that were stored, and of all.
fn store_and_write(
    sweep: &Sweep,
    client: &mut Requests,
    mut choose: impl for<'a> FnMut(&'a Subject) -> Vec<Vec<(&'a Spot, Fill)>>,
) -> Result<(usize, usize)> {
    // Half of what the sweep sends: there are as many bytes in the stored object.
    let bytes = sweep.bytes / 2;
    let (mut tried, mut stored) = (0, 0);
    for subject in client.subjects()? {
        if !is_status(&subject) && (subject.kind.resource.contains('/') || !subject.kind.has("get")) {
            continue;
        }
        for chosen in choose(&subject) {
            tried += 1;
            let mut object = Stored::new(&subject, tried, chosen);
            object.prepare(client)?;
            if object.learn(client)? && object.store(client, bytes)? {
                stored += 1;
                object.write_again(client, sweep.every_way)?;
            }
        }
    }
    println!("{stored} of {tried} were stored");
    Ok((stored, tried))
}

#[test]
fn no_stored_list_or_map_makes_a_request_expensive() -> Result {
    let sweep = Sweep::from_environment()?;
    let mut client = Requests::start(sweep.bound)?;
    let mut seen = HashSet::new();
    let (stored, tried) = store_and_write(&sweep, &mut client, |subject| {
        let spots = subject.spots.iter().filter(|spot| !sweep.skips(spot, &mut seen));
        spots.flat_map(|spot| sweep.fills.iter().map(move |fill| vec![(spot, *fill)])).collect()
    })?;
    let most_are_expected = sweep.fills == [Fill::Distinct] && sweep.only.is_empty();
    assert!(
        !most_are_expected || stored * 4 >= tried * 3,
        "only {stored} of {tried} lists and maps could be stored"
    );
    client.report()
}

#[test]
fn no_stored_lists_and_maps_together_make_a_request_expensive() -> Result {
    let sweep = Sweep::from_environment()?;
    let mut client = Requests::start(sweep.bound)?;
    let (stored, tried) = store_and_write(&sweep, &mut client, |subject| {
        sweep.choices(&subject.spots, &subject.kind.path(""))
    })?;
    assert!(stored * 5 >= tried, "only {stored} of {tried} objects could be stored");
    client.report()
}
