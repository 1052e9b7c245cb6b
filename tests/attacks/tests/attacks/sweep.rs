//! Writes every list and map of every served kind, full of small entries, by every verb and patch type.
//!
//! The whole sweep takes an hour with a release build: `cargo xtask sweep` runs it. The test by default takes
//! every list and map once, in the first kind that has its type, with smaller bodies of different entries, created and
//! applied: quadratic work is visible at a thirtieth of the size, too.
//!
//! A second test fills some lists and maps of an object together, chosen at random: their entries have the same names,
//! so that code which looks one up in the other finds it late, or not at all.

use crate::Result;
use pintle_attacks::{Fill, Served, Spot, Target, base_object, body_with, served, spots, value_of_size};
use pintle_harness::{Connection, Response};
use pintle_schema::Schema;
use serde_json::{Value, json};
use std::{
    collections::HashSet,
    env,
    fmt::Write,
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher},
    time::Duration,
};

/// The scope of a sweep.
struct Sweep {
    /// The size of a list or map, in bytes.
    bytes: usize,
    fills: Vec<Fill>,
    /// Whether to write every kind, instead of each type once.
    every_kind: bool,
    /// The limit of the CPU time of a request.
    bound: Duration,
    /// Whether to send updates and all patches, too.
    every_way: bool,
    /// Only spots whose owner has this text in its name.
    only: String,
    /// The number of objects of each kind with lists that are filled together.
    rounds: usize,
    /// What the choice of the lists follows from.
    seed: usize,
}

impl Sweep {
    fn from_environment() -> Sweep {
        let number = |name: &str, default: usize| {
            env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
        };
        let is_whole = env::var_os("PINTLE_SWEEP").is_some();
        Sweep {
            bytes: number("PINTLE_SWEEP_BYTES", if is_whole { 1_200_000 } else { 40_000 }),
            fills: if is_whole { Fill::ALL.to_vec() } else { vec![Fill::Distinct] },
            every_way: is_whole,
            every_kind: env::var("PINTLE_SWEEP").is_ok_and(|value| value == "all"),
            bound: Duration::from_millis(number("PINTLE_SWEEP_MS", 1000) as u64),
            only: env::var("PINTLE_SWEEP_ONLY").unwrap_or_default(),
            rounds: number("PINTLE_SWEEP_ROUNDS", if is_whole { 20 } else { 1 }),
            seed: number("PINTLE_SWEEP_SEED", 1),
        }
    }
}

/// A request that exceeded the limit.
struct Find {
    what: String,
    cpu: Duration,
}

#[test]
fn no_list_or_map_makes_a_request_expensive() -> Result {
    let sweep = Sweep::from_environment();
    let mut client = Requests::start(sweep.bound)?;
    let mut seen = HashSet::new();
    for subject in client.subjects()? {
        for spot in &subject.spots {
            if !spot.owner().contains(&sweep.only)
                || !sweep.every_kind && !seen.insert(spot.owner().to_owned())
            {
                continue;
            }
            for &fill in &sweep.fills {
                let body = body_with(&subject.base, spot, value_of_size(spot, fill, sweep.bytes));
                let what = format!("{} {fill:?}", spot.owner());
                client.write(&sweep, &subject, &what, body, &spot.pointer())?;
            }
        }
    }
    client.report()
}

#[test]
fn no_lists_and_maps_together_make_a_request_expensive() -> Result {
    const MOST: usize = 6;
    let sweep = Sweep::from_environment();
    let mut client = Requests::start(sweep.bound)?;
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    for mut subject in client.subjects()? {
        // The metadata of all kinds has the same lists, which are filled one by one above.
        subject.spots.retain(|spot| !spot.pointer().starts_with("/metadata/"));
        let many = subject.spots.len().div_ceil(10);
        for round in 0..sweep.rounds * many {
            let choice = |draw: usize, from: usize| {
                let hash = hasher.hash_one((sweep.seed, round, draw, subject.kind.path("")));
                usize::try_from(hash % from as u64).unwrap_or_default()
            };
            let mut chosen: Vec<_> = (0..2 + choice(0, MOST - 1))
                .map(|draw| &subject.spots[choice(draw + 1, subject.spots.len())])
                .collect();
            // A list below another one is filled in its first entry.
            chosen.sort_by_key(|spot| spot.pointer().len());
            let (mut body, mut what) = (subject.base.clone(), format!("round {round}:"));
            for (index, spot) in chosen.iter().enumerate() {
                let fill = [Fill::Distinct, Fill::Full][choice(MOST + 1 + index, 2)];
                body = body_with(&body, spot, value_of_size(spot, fill, sweep.bytes / chosen.len()));
                write!(what, " {} {fill:?}", spot.owner())?;
            }
            client.write(&sweep, &subject, &what, body, &chosen[0].pointer())?;
        }
    }
    client.report()
}

/// A resource or subresource to write, with a valid object of it and what to fill in that.
struct Subject {
    kind: Served,
    name: String,
    base: Value,
    spots: Vec<Spot>,
}

struct Requests {
    target: Target,
    connection: Option<Connection>,
    bound: Duration,
    finds: Vec<Find>,
    count: usize,
}

impl Requests {
    /// Starts a server.
    fn start(bound: Duration) -> Result<Requests> {
        let target = Target::start()?;
        // Pods need a service account, and no controller creates it here.
        target
            .master()?
            .post("/api/v1/namespaces/default/serviceaccounts", &json!({"metadata": {"name": "default"}}))?;
        Ok(Requests { connection: None, target, bound, finds: Vec::new(), count: 0 })
    }

    /// Everything that is served and can be written. Of each kind there is an object to update.
    fn subjects(&mut self) -> Result<Vec<Subject>> {
        let (mut subjects, mut unmade) = (Vec::new(), Vec::new());
        for kind in served(&self.target.master()?)? {
            if kind.kind.is_empty()
                || !(kind.has("create") || kind.has("update"))
                || kind.resource.contains("/proxy")
            {
                continue;
            }
            let Some(schema) = Schema::builtin().by_kind(&kind.group, &kind.version, &kind.kind) else {
                continue;
            };
            let part = kind.resource.split_once('/').map(|(_, part)| part);
            let name = "base";
            let base = base_object(&kind.api_version(), &kind.kind, name);
            let name = base["metadata"]["name"].as_str().unwrap_or(name).to_owned();
            if part.is_none() && kind.has("get") {
                let made = self.send("POST", &kind.path(""), "application/json", &base)?;
                if !matches!(made.status, 201 | 409) {
                    unmade.push(format!("{}: {}", kind.resource, made.text()));
                }
            }
            let in_part = part == Some("status");
            let spots = spots(schema).into_iter().filter(|spot| spot.in_status() == in_part).collect();
            subjects.push(Subject { kind, name, base, spots });
        }
        assert_eq!(unmade, [""; 0], "there is nothing to update of these kinds");
        Ok(subjects)
    }

    fn send(&mut self, method: &str, path: &str, media_type: &str, body: &Value) -> Result<Response> {
        let body = body.to_string();
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.target.master()?.connect()?,
        };
        let answer = connection.request(method, path, &[("content-type", media_type)], body.as_bytes());
        self.count += 1;
        if answer.is_ok() {
            self.connection = Some(connection);
        }
        answer
    }

    /// Writes an object with full lists or maps by every verb and patch type; `pointer` leads to one of them.
    fn write(
        &mut self,
        sweep: &Sweep,
        Subject { kind, name, .. }: &Subject,
        what: &str,
        mut body: Value,
        pointer: &str,
    ) -> Result {
        let mut ways = Vec::new();
        if kind.has("create") {
            let below = kind.resource.contains('/');
            ways.push(("POST", kind.path(if below { name } else { "" }), "application/json", body.clone()));
        }
        if kind.has("update") && (sweep.every_way || ways.is_empty()) {
            ways.push(("PUT", kind.path(name), "application/json", body.clone()));
        }
        if kind.has("patch") {
            ways.push(("PATCH", kind.path(name), "application/apply-patch+yaml", body.clone()));
        }
        if kind.has("patch") && sweep.every_way {
            ways.push(("PATCH", kind.path(name), "application/merge-patch+json", body.clone()));
            ways.push(("PATCH", kind.path(name), "application/strategic-merge-patch+json", body.clone()));
            let operation = match pointer.split('/').nth(1) {
                Some(first) => {
                    json!([{"op": "add", "path": format!("/{first}"), "value": body[first].take()}])
                }
                None => json!([]),
            };
            ways.push(("PATCH", kind.path(name), "application/json-patch+json", operation));
        }
        for (method, path, media_type, body) in ways {
            let what = format!("{what} {method} {path} {media_type}");
            let path = format!("{path}?dryRun=All&fieldManager=sweep&force=true");
            let path = if media_type.contains("apply") { path } else { path.replace("&force=true", "") };
            let before = self.target.server.cpu_time()?;
            let answer = self.send(method, &path, media_type, &body);
            let cpu = self.target.server.cpu_time()? - before;
            let outcome = match answer {
                Ok(answer) => format!("{} {} kB", answer.status, answer.body.len() / 1024),
                Err(error) => error.to_string(),
            };
            if env::var_os("PINTLE_SWEEP_LOG").is_some() {
                println!("{cpu:?} {what}: {outcome}");
            }
            if cpu > self.bound {
                self.finds.push(Find { what: format!("{what}: {outcome}"), cpu });
            }
            assert!(self.target.server.is_running(), "{what} ended the server");
        }
        Ok(())
    }

    fn report(mut self) -> Result {
        self.finds.sort_by_key(|find| std::cmp::Reverse(find.cpu));
        let mut text = String::new();
        for Find { what, cpu } in &self.finds {
            writeln!(text, "{cpu:?} {what}")?;
        }
        println!("{} requests", self.count);
        assert!(
            self.finds.is_empty(),
            "{} of {} requests took too long:\n{text}",
            self.finds.len(),
            self.count
        );
        Ok(())
    }
}
