//! The requests of the sweeps, and what each may cost.

use crate::Result;
use pintle_attacks::{Served, Spot, Target, base_object, served, spots};
use pintle_harness::{Connection, Response};
use pintle_schema::{Schema, SchemaRef};
use serde_json::{Value, json};
use std::{env, fmt::Write, time::Duration};

/// A request that exceeded the limit.
struct Find {
    what: String,
    cpu: Duration,
}

/// A resource or subresource to write, with a valid object of it and what to fill in that.
pub(crate) struct Subject {
    pub(crate) kind: Served,
    /// The name of the object to update.
    pub(crate) name: String,
    pub(crate) schema: SchemaRef<'static>,
    pub(crate) base: Value,
    pub(crate) spots: Vec<Spot>,
}

/// Sends requests to a server, and keeps those that took too long.
pub(crate) struct Requests {
    target: Target,
    connection: Option<Connection>,
    bound: Duration,
    finds: Vec<Find>,
    count: usize,
}

impl Requests {
    /// Starts a server.
    pub(crate) fn start(bound: Duration) -> Result<Requests> {
        let target = Target::start()?;
        // Pods need a service account, and no controller creates it here.
        target
            .master()?
            .post("/api/v1/namespaces/default/serviceaccounts", &json!({"metadata": {"name": "default"}}))?;
        Ok(Requests { connection: None, target, bound, finds: Vec::new(), count: 0 })
    }

    /// Everything that is served and can be written. Of each kind there is an object to update.
    pub(crate) fn subjects(&mut self) -> Result<Vec<Subject>> {
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
            subjects.push(Subject { kind, name, schema, base, spots });
        }
        assert_eq!(unmade, [""; 0], "there is nothing to update of these kinds");
        Ok(subjects)
    }

    /// Sends a request over a connection that is kept.
    pub(crate) fn send(
        &mut self,
        method: &str,
        path: &str,
        media_type: &str,
        body: &Value,
    ) -> Result<Response> {
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
    pub(crate) fn write(
        &mut self,
        kind: &Served,
        name: &str,
        what: &str,
        mut body: Value,
        pointer: &str,
        every_way: bool,
    ) -> Result {
        let mut ways = Vec::new();
        if kind.has("create") {
            let below = kind.resource.contains('/');
            ways.push(("POST", kind.path(if below { name } else { "" }), "application/json", body.clone()));
        }
        if kind.has("update") && (every_way || ways.is_empty()) {
            ways.push(("PUT", kind.path(name), "application/json", body.clone()));
        }
        if kind.has("patch") {
            ways.push(("PATCH", kind.path(name), "application/apply-patch+yaml", body.clone()));
        }
        if kind.has("patch") && every_way {
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
            self.measure(&what, method, &path, media_type, &body)?;
        }
        Ok(())
    }

    /// Sends a request and measures its CPU time. The answer, unless the server closed the connection.
    pub(crate) fn measure(
        &mut self,
        what: &str,
        method: &str,
        path: &str,
        media_type: &str,
        body: &Value,
    ) -> Result<Option<Response>> {
        let before = self.target.server.cpu_time()?;
        let answer = self.send(method, path, media_type, body);
        let cpu = self.target.server.cpu_time()? - before;
        let outcome = match &answer {
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
        Ok(answer.ok())
    }

    /// Fails if a request took too long.
    pub(crate) fn report(mut self) -> Result {
        self.finds.sort_by_key(|find| std::cmp::Reverse(find.cpu));
        let mut text = String::new();
        for Find { what, cpu } in &self.finds {
            writeln!(text, "{cpu:?} {what}")?;
        }
        println!("{} requests", self.count);
        assert!(self.count > 0, "nothing was swept");
        assert!(
            self.finds.is_empty(),
            "{} of {} requests took too long:\n{text}",
            self.finds.len(),
            self.count
        );
        Ok(())
    }
}
