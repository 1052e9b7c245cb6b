//! Measures what admission adds to the cost of creating a pod: policies that match and policies that do not, a webhook
//! over a kept connection, and the memory of many policies.
//!
//! The server runs on the memory engine, so that a create costs little beside admission. Every set of configurations is
//! measured several times in turn with none, and the medians are compared: a create alone varies more than a policy
//! costs. The client has several creates at the same time on one HTTP/2 connection, as the load generator has.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pintle_harness::{AdmittingWebhook, BusyClient, Config, Connection, Error, Server, wait_for};
use serde_json::{Value, json};

use crate::task;

const GOAL_CREATE: Duration = Duration::from_micros(300);
const GOAL_MATCHING: Duration = Duration::from_micros(60);
const GOAL_OTHERS: Duration = Duration::from_micros(10);
const GOAL_WEBHOOK: Duration = Duration::from_micros(80);
const GOAL_MB: f64 = 40.0;
/// The number of policies in a set.
const POLICIES: usize = 10;
/// The number of creates at the same time.
const AT_ONCE: usize = 16;
/// The number of measurements of each set.
const ROUNDS: usize = 5;
const PATIENCE: Duration = Duration::from_secs(20);
const NAMESPACE: &str = "bench";
const REGISTRATION: &str = "/apis/admissionregistration.k8s.io/v1";
const PODS: &str = "/api/v1/namespaces/bench/pods";

struct Request {
    creates: u32,
    policies: usize,
    /// The server's binary, when it is built already.
    binary: Option<PathBuf>,
}

pub(crate) fn run(root: &Path, args: &[&str]) -> Result<(), String> {
    let request = parse(args)?;
    let binary = match &request.binary {
        Some(binary) => binary.clone(),
        None => task::build_server(root, true)?,
    };
    measure(&binary, &request).map_err(|error| error.to_string())
}

fn parse(args: &[&str]) -> Result<Request, String> {
    let mut request = Request { creates: 1000, policies: 1000, binary: None };
    for arg in args {
        let (flag, value) = arg.split_once('=').ok_or_else(|| format!("{arg}: flags are --name=value"))?;
        let number = || value.parse::<u32>().map_err(|error| format!("{flag}: {error}"));
        match flag {
            "--creates" => request.creates = number()?,
            "--binary" => request.binary = Some(value.into()),
            "--policies" => request.policies = number()? as usize,
            _ => return Err(format!("unknown flag {flag}")),
        }
    }
    Ok(request)
}

/// A server with two connections to it.
struct Bench {
    server: Server,
    /// The connection of the configuration.
    connection: Connection,
    client: BusyClient,
    creates: u32,
    created: u32,
}

fn measure(binary: &Path, request: &Request) -> Result<(), Error> {
    let server = Server::start(Config::new(binary).flag("--storage-backend=memory"))?;
    let connection = server.client()?.connect()?;
    let client = BusyClient::connect(&server.client()?)?;
    let mut bench = Bench { server, connection, client, creates: request.creates, created: 0 };
    bench.post("/api/v1/namespaces", &json!({"metadata": {"name": NAMESPACE}}))?;
    bench.post(
        &format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts"),
        &json!({"metadata": {"name": "default"}}),
    )?;
    bench.creates()?;
    let webhook = AdmittingWebhook::start()?;
    let webhook_configuration = webhook_configuration(&webhook);
    let (mut none, mut matching, mut others, mut called) = (vec![], vec![], vec![], vec![]);
    for _ in 0..ROUNDS {
        none.push(bench.creates()?);
        bench.with_policies("pods", POLICIES)?;
        matching.push(bench.creates()?);
        bench.without_policies(POLICIES)?;
        none.push(bench.creates()?);
        bench.with_policies("secrets", POLICIES)?;
        others.push(bench.creates()?);
        bench.without_policies(POLICIES)?;
        none.push(bench.creates()?);
        let calls = webhook.calls();
        bench.post(&format!("{REGISTRATION}/validatingwebhookconfigurations"), &webhook_configuration)?;
        bench.until(|bench| {
            // The pod exists, but admission comes before that.
            let _ = bench.post(PODS, &pod(0));
            Ok(webhook.calls() > calls)
        })?;
        called.push(bench.creates()?);
        bench.delete(&format!("{REGISTRATION}/validatingwebhookconfigurations/bench"))?;
    }
    let before = bench.server.memory_kb("VmRSS")?;
    bench.with_policies("secrets", request.policies)?;
    let megabytes = bench.server.memory_kb("VmRSS")?.saturating_sub(before) as f64 / 1024.0;
    let base = median(none);
    let rows = [
        ("create a pod, default plugins".to_owned(), base, GOAL_CREATE),
        (format!("{POLICIES} policies that match add"), median(matching).saturating_sub(base), GOAL_MATCHING),
        (
            format!("{POLICIES} policies that do not match add"),
            median(others).saturating_sub(base),
            GOAL_OTHERS,
        ),
        (
            "a webhook over a kept connection adds".to_owned(),
            median(called).saturating_sub(base),
            GOAL_WEBHOOK,
        ),
    ];
    println!("| | server CPU | goal | |");
    println!("|---|---|---|---|");
    for (what, is, goal) in rows {
        println!("| {what} | {is:.1?} | < {goal:?} | {} |", super::verdict(is < goal));
    }
    let verdict = super::verdict(megabytes < GOAL_MB);
    println!("| {} policies | {megabytes:.1} MB | < {GOAL_MB} MB | {verdict} |", request.policies);
    Ok(())
}

impl Bench {
    /// The CPU time of a create, the mean of many.
    fn creates(&mut self) -> Result<Duration, Error> {
        let before = self.server.cpu_time()?;
        let created = self.created;
        let pod = |number| (PODS.to_owned(), pod(created + number).to_string());
        self.client.requests(self.creates, AT_ONCE, pod)?;
        self.created += self.creates;
        Ok((self.server.cpu_time()? - before) / self.creates)
    }

    fn post(&mut self, path: &str, body: &Value) -> Result<(), Error> {
        let headers = [("content-type", "application/json")];
        let answer = self.connection.request("POST", path, &headers, body.to_string().as_bytes())?;
        if answer.status == 201 { Ok(()) } else { Err(format!("POST {path}: {}", answer.text()).into()) }
    }

    fn delete(&mut self, path: &str) -> Result<(), Error> {
        let answer = self.connection.request("DELETE", path, &[], b"")?;
        if answer.status == 200 { Ok(()) } else { Err(format!("DELETE {path}: {}", answer.text()).into()) }
    }

    /// Waits for a condition that the server reaches by itself.
    fn until(&mut self, mut holds: impl FnMut(&mut Bench) -> Result<bool, Error>) -> Result<(), Error> {
        wait_for("the configuration counts", PATIENCE, || holds(self).ok()?.then_some(()))
    }

    /// Creates policies of three expressions for creates of a resource, and waits until the last one counts.
    fn with_policies(&mut self, resource: &str, count: usize) -> Result<(), Error> {
        for number in 0..count {
            self.post(&format!("{REGISTRATION}/validatingadmissionpolicies"), &policy(number, resource))?;
            let binding = json!({
                "metadata": {"name": format!("bench-{number}")},
                "spec": {"policyName": format!("bench-{number}"), "validationActions": ["Deny"]},
            });
            self.post(&format!("{REGISTRATION}/validatingadmissionpolicybindings"), &binding)?;
        }
        let last = count - 1;
        self.until(|bench| bench.is_denied(&format!("deny-{last}")))
    }

    fn without_policies(&mut self, count: usize) -> Result<(), Error> {
        for number in 0..count {
            self.delete(&format!("{REGISTRATION}/validatingadmissionpolicybindings/bench-{number}"))?;
            self.delete(&format!("{REGISTRATION}/validatingadmissionpolicies/bench-{number}"))?;
        }
        let last = count - 1;
        self.until(|bench| Ok(!bench.is_denied(&format!("deny-{last}"))?))
    }

    /// Whether policies deny a pod and a secret with a label: they have expressions for it.
    fn is_denied(&mut self, label: &str) -> Result<bool, Error> {
        let headers = [("content-type", "application/json")];
        for (path, spec) in [
            (PODS.to_owned(), json!({"containers": [{"name": "main", "image": "x"}]})),
            (format!("/api/v1/namespaces/{NAMESPACE}/secrets"), Value::Null),
        ] {
            let metadata = json!({"generateName": "probe-", "labels": {"probe": label}});
            let object = json!({"metadata": metadata, "spec": spec}).to_string();
            let path = format!("{path}?dryRun=All");
            if self.connection.request("POST", &path, &headers, object.as_bytes())?.status == 422 {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The pod of a number.
fn pod(number: u32) -> Value {
    json!({
        "metadata": {"name": format!("pod-{number}"), "labels": {"app": "bench"}},
        "spec": {
            "containers": [{
                "name": "main",
                "image": "registry.example.com/app:1",
                "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
            }],
        },
    })
}

/// A policy of three expressions, which denies objects with a label of its number.
fn policy(number: usize, resource: &str) -> Value {
    let expression = |text: String| json!({"expression": text});
    json!({
        "metadata": {"name": format!("bench-{number}")},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "resourceRules": [{
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": [resource],
                }],
            },
            "validations": [
                expression(format!("object.metadata.?labels['probe'].orValue('') != 'deny-{number}'")),
                expression(format!("object.metadata.name.size() < {}", 250 - number % 100)),
                expression("!has(object.spec) || object.spec.containers.all(c, c.image != 'forbidden')".to_owned()),
            ],
        },
    })
}

fn webhook_configuration(webhook: &AdmittingWebhook) -> Value {
    use base64::{Engine, engine::general_purpose::STANDARD};
    json!({
        "metadata": {"name": "bench"},
        "webhooks": [{
            "name": "bench.example.com",
            "clientConfig": {"url": webhook.url(), "caBundle": STANDARD.encode(webhook.certificate())},
            "rules": [{
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["pods"],
            }],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }],
    })
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
