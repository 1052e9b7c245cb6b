//! The load generator's line about a cluster, and the rule by which a server carries it.

use std::fmt::Write as _;

use serde_json::Value;

/// The limit of the 99th percentile of requests and of the events of each kind of watch, in milliseconds.
const MAX_P99_MS: f64 = 1000.0;
/// From this delay of its own on, the generator was too busy to measure latencies.
const MAX_GENERATOR_DELAY_MS: f64 = 100.0;
/// The name of the server, which the generator does not know, in a kept line.
const SERVER: &str = "server";

pub(super) const TABLE_HEAD: &str = "\
| server | nodes | pods | pods/s | API p99 | worst watch p99 | server cores | peak MB | missed | duplicated | drained | others' cores | |
|---|---|---|---|---|---|---|---|---|---|---|---|---|";

/// The counts that have to be zero, and how a verdict names them.
const COUNTS: [(&str, &str); 5] = [
    ("pod_states_missed", "states of pods missed"),
    ("pod_states_duplicated", "states of pods duplicated"),
    ("pods_incomplete", "pods incomplete"),
    ("events_at_wrong_node", "events at the wrong node"),
    ("events_out_of_order", "events out of order"),
];

/// A server's behavior with one size of cluster.
#[derive(Debug)]
pub(super) struct Outcome {
    server: String,
    nodes: u64,
    churn: f64,
    api_p99_ms: f64,
    worst_watch: String,
    worst_watch_p99_ms: f64,
    /// The sum over the server's processes.
    cores: f64,
    /// The sum over the server's processes.
    peak_mb: f64,
    /// The reasons why the cluster is not carried.
    faults: Vec<String>,
    line: Value,
}

/// All clusters in the generator's output.
///
/// # Errors
/// When a line lacks a figure, or when objects could not be made: then the cluster is not what it says.
pub(super) fn all(server: &str, output: &str) -> Result<Vec<Outcome>, String> {
    let mut outcomes = Vec::new();
    for line in output.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let workload = line.get("workload").and_then(Value::as_str).unwrap_or_default();
        if workload == "cluster" {
            outcomes.push(Outcome::of(server, line)?);
        } else if workload.starts_with("cluster") && line.get("errors").and_then(Value::as_u64) != Some(0) {
            let error = line.get("first_error").and_then(Value::as_str).unwrap_or("no count of errors");
            return Err(format!("{workload}: {error}"));
        }
    }
    Ok(outcomes)
}

/// The lines of the outcomes, with the names of the servers.
pub(super) fn lines(outcomes: &[Outcome]) -> String {
    outcomes.iter().map(|outcome| format!("{}\n", outcome.line)).collect()
}

/// The outcomes of the lines that [`lines`] made.
#[cfg(test)]
pub(super) fn read_lines(text: &str) -> Result<Vec<Outcome>, String> {
    let parsed = text.lines().map(|line| {
        let line: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let server = line.get(SERVER).and_then(Value::as_str).ok_or("no server")?.to_owned();
        Outcome::of(&server, line)
    });
    parsed.collect()
}

impl Outcome {
    fn of(server: &str, mut line: Value) -> Result<Outcome, String> {
        let number = |key: &str| line.get(key).and_then(Value::as_f64).ok_or_else(|| lacks(key));
        let sum = |key: &str| {
            let processes = line.get(key).and_then(Value::as_array).filter(|list| !list.is_empty());
            let numbers = processes.ok_or_else(|| lacks(key))?.iter().map(Value::as_f64);
            numbers.sum::<Option<f64>>().ok_or_else(|| lacks(key))
        };
        let api_p99_ms = number("api_p99_ms")?;
        let mut faults = Vec::new();
        for (key, name) in COUNTS {
            let count = number(key)?;
            if count > 0.0 {
                faults.push(format!("{count} {name}"));
            }
        }
        if !line.get("drained").and_then(Value::as_bool).ok_or_else(|| lacks("drained"))? {
            faults.push("not drained a minute later".to_owned());
        }
        for (key, name) in [("errors", "errors"), ("unanswered", "requests unanswered")] {
            let counts = match line.get(key) {
                // Older generators do not count unanswered requests.
                None if key == "unanswered" => continue,
                counts => counts.and_then(Value::as_object).ok_or_else(|| lacks(key))?,
            };
            if !counts.is_empty() {
                faults.push(format!("{name}: {}", Value::Object(counts.clone())));
            }
        }
        if api_p99_ms >= MAX_P99_MS {
            faults.push(format!("p99 of requests {api_p99_ms:.0} ms"));
        }
        let watches = line.get("watch").and_then(Value::as_object).filter(|watches| !watches.is_empty());
        let (mut worst_watch, mut worst_watch_p99_ms) = (String::new(), 0.0);
        for (name, watch) in watches.ok_or_else(|| lacks("watch"))? {
            let p99_ms = watch.get("p99_ms").and_then(Value::as_f64).ok_or_else(|| lacks("watch p99_ms"))?;
            if p99_ms >= MAX_P99_MS {
                faults.push(format!("p99 of {name} {p99_ms:.0} ms"));
            }
            if p99_ms > worst_watch_p99_ms {
                (worst_watch, worst_watch_p99_ms) = (name.clone(), p99_ms);
            }
        }
        let (nodes, churn) = (number("nodes")? as u64, number("churn")?);
        let (cores, peak_mb) = (sum("server_cpu_cores")?, sum("peak_mb")?);
        let object = line.as_object_mut().ok_or("the line is no object")?;
        object.insert(SERVER.to_owned(), server.into());
        let server = server.to_owned();
        Ok(Outcome {
            server,
            nodes,
            churn,
            api_p99_ms,
            worst_watch,
            worst_watch_p99_ms,
            cores,
            peak_mb,
            faults,
            line,
        })
    }

    pub(super) fn server(&self) -> &str {
        &self.server
    }

    pub(super) fn nodes(&self) -> u64 {
        self.nodes
    }

    pub(super) fn churn(&self) -> f64 {
        self.churn
    }

    pub(super) fn cores(&self) -> f64 {
        self.cores
    }

    pub(super) fn peak_mb(&self) -> f64 {
        self.peak_mb
    }

    /// Whether nothing is missed, refused or late.
    pub(super) fn is_carried(&self) -> bool {
        self.faults.is_empty()
    }

    /// A row below [`TABLE_HEAD`].
    pub(super) fn row(&self) -> String {
        let text = |key: &str| self.line.get(key).map(Value::to_string).unwrap_or_default();
        let Outcome { server, nodes, churn, api_p99_ms, worst_watch, worst_watch_p99_ms, .. } = self;
        let mut row = format!("| {server} | {nodes} | {} | {churn} | {api_p99_ms:.1} ms ", text("pods"));
        // Writing to a string does not fail.
        let _ = write!(
            row,
            "| {worst_watch_p99_ms:.1} ms ({worst_watch}) | {:.3} | {:.0} | {} | {} | {} | {} | {} |",
            self.cores,
            self.peak_mb,
            text("pod_states_missed"),
            text("pod_states_duplicated"),
            text("drained"),
            text("other_cpu_cores"),
            if self.is_carried() { "carried" } else { "NOT carried" },
        );
        row
    }

    /// A sentence that says whether the cluster is carried, and why not.
    pub(super) fn verdict(&self) -> String {
        let number = |key: &str| self.line.get(key).and_then(Value::as_f64).unwrap_or_default();
        let what = format!("{} nodes, {} pods/s", self.nodes, self.churn);
        let mut verdict = match self.is_carried() {
            true => format!("{what}: carried"),
            false => format!("{what}: NOT carried: {}", self.faults.join("; ")),
        };
        if number("watch_restarts") > 0.0 {
            let _ = write!(verdict, " (the server ended {} watches)", number("watch_restarts"));
        }
        if number("generator_delay_p99_ms") > MAX_GENERATOR_DELAY_MS {
            verdict.push_str(" (the generator was late itself: the latencies say little)");
        }
        verdict
    }
}

fn lacks(key: &str) -> String {
    format!("the load generator's line lacks {key}")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::json;

    /// The line of a server of two processes that carries a cluster.
    pub(in crate::bench::cluster) fn line(nodes: u64, cores: f64, peak_mb: u64) -> Value {
        json!({
            "workload": "cluster", "nodes": nodes, "pods": 30 * nodes, "churn": 10.0, "api_p99_ms": 9.5,
            "watch": {"kubelet: pods": {"p99_ms": 7.0}, "controller: nodes": {"p99_ms": 8.25}},
            "pod_states_missed": 0, "pod_states_duplicated": 0, "pods_incomplete": 0, "events_at_wrong_node": 0,
            "events_out_of_order": 0, "drained": true, "errors": {}, "unanswered": {}, "watch_restarts": 0,
            "server_cpu_cores": [cores, 0.25], "peak_mb": [peak_mb, 40], "other_cpu_cores": 0.1,
            "generator_delay_p99_ms": 2.0,
        })
    }

    fn outcome(key: &str, value: Value) -> Result<Outcome, String> {
        let mut line = line(200, 0.5, 100);
        match key.split_once('/') {
            Some((outer, inner)) => line[outer][inner] = value,
            None => line[key] = value,
        }
        Outcome::of("a server", line)
    }

    #[test]
    fn figures_of_all_processes_are_added() {
        let outcome = outcome("nodes", json!(300)).unwrap();
        assert_eq!((outcome.nodes(), outcome.cores(), outcome.peak_mb()), (300, 0.75, 140.0));
        assert_eq!(
            outcome.row(),
            "| a server | 300 | 6000 | 10 | 9.5 ms | 8.2 ms (controller: nodes) | 0.750 | 140 | 0 | 0 | true | 0.1 | carried |"
        );
        assert_eq!(TABLE_HEAD.lines().map(|line| line.matches('|').count()).collect::<Vec<_>>(), [14, 14]);
        assert_eq!(outcome.row().matches('|').count(), 14);
    }

    #[test]
    fn a_cluster_is_carried_when_nothing_is_missed_refused_or_late() {
        for (key, value, verdict) in [
            ("api_p99_ms", json!(999.9), "carried"),
            ("api_p99_ms", json!(1000.0), "NOT carried: p99 of requests 1000 ms"),
            ("watch/kubelet: pods", json!({"p99_ms": 999.9}), "carried"),
            ("watch/kubelet: pods", json!({"p99_ms": 1234.5}), "NOT carried: p99 of kubelet: pods 1234 ms"),
            ("pod_states_missed", json!(1), "NOT carried: 1 states of pods missed"),
            ("pod_states_duplicated", json!(2), "NOT carried: 2 states of pods duplicated"),
            ("pods_incomplete", json!(3), "NOT carried: 3 pods incomplete"),
            ("events_at_wrong_node", json!(4), "NOT carried: 4 events at the wrong node"),
            ("events_out_of_order", json!(5), "NOT carried: 5 events out of order"),
            ("drained", json!(false), "NOT carried: not drained a minute later"),
            ("errors", json!({"put lease 500": 1}), "NOT carried: errors: {\"put lease 500\":1}"),
            ("unanswered", json!({"get": 1}), "NOT carried: requests unanswered: {\"get\":1}"),
            ("watch_restarts", json!(2), "carried (the server ended 2 watches)"),
            (
                "generator_delay_p99_ms",
                json!(101.0),
                "carried (the generator was late itself: the latencies say little)",
            ),
        ] {
            let outcome = outcome(key, value).unwrap();
            assert_eq!(outcome.verdict(), format!("200 nodes, 10 pods/s: {verdict}"), "{key}");
            assert_eq!(outcome.is_carried(), verdict.starts_with("carried"), "{key}");
        }
    }

    #[test]
    fn a_line_that_lacks_a_figure_is_an_error() {
        for key in [
            "nodes",
            "churn",
            "api_p99_ms",
            "drained",
            "errors",
            "watch",
            "server_cpu_cores",
            "peak_mb",
            "pod_states_missed",
            "events_out_of_order",
        ] {
            assert!(outcome(key, json!("none")).is_err(), "{key}");
        }
        assert!(outcome("peak_mb", json!([])).is_err());
        assert!(outcome("watch", json!({})).is_err());
        assert!(outcome("watch/kubelet: pods", json!({})).is_err());
    }

    #[test]
    fn clusters_are_found_among_other_lines() {
        let cluster = line(200, 0.5, 100);
        let preload = json!({"workload": "cluster: preload pods", "errors": 0});
        let text = format!("warning: x\n{{\"workload\":\"idle\"}}\n{preload}\n{cluster}\n");
        let outcomes = all("a server", &text).unwrap();
        assert_eq!(outcomes.iter().map(Outcome::nodes).collect::<Vec<_>>(), [200]);
        let kept = lines(&outcomes);
        assert_eq!(lines(&read_lines(&kept).unwrap()), kept);
        assert!(kept.contains("\"server\":\"a server\""));
        let failed = json!({"workload": "cluster: preload pods", "errors": 1, "first_error": "403"});
        assert_eq!(all("a server", &failed.to_string()).unwrap_err(), "cluster: preload pods: 403");
        assert_eq!(all("a server", "").unwrap().len(), 0);
    }
}
