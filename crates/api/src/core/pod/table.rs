//! The table columns of pods, as in `kubectl get pods`.

use super::conditions::is_true;
use crate::core::pod_spec::containers_of::is_restartable_init;
use crate::printing::{NONE, age, column, name, text_or, wide};
use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt, json, meta, meta::ObjectMeta};
use pintle_registry::{Cell, Column, TableConvertor};
use std::collections::HashMap;

/// The table of pods.
#[derive(Debug, Clone, Copy)]
pub(super) struct PodTable;

impl TableConvertor for PodTable {
    fn columns(&self) -> Vec<Column> {
        vec![
            Column::name(),
            column("Ready", "How many of the pod's containers are ready to take requests."),
            column("Status", "What the containers do, taken together."),
            column("Restarts", "How often containers were restarted, and when the last one was."),
            Column::age(),
            wide("IP", "The pod's address."),
            wide("Node", "The node that the pod is on."),
            wide("Nominated Node", "The node that makes room for the pod."),
            wide("Readiness Gates", "How many of the conditions that others set are met."),
        ]
    }

    fn cells(&self, pod: &Value, now: Timestamp) -> Vec<Cell> {
        let summary = Summary::of(pod);
        let ip = pod.items_at("status.podIPs").first().map_or("", |first| first.str_at("ip"));
        vec![
            name(pod),
            format!("{}/{}", summary.ready, summary.total).into(),
            summary.reason.into(),
            summary.restarts.print(now).into(),
            age(pod, now),
            (if ip.is_empty() { NONE } else { ip }).into(),
            text_or(pod, "spec.nodeName", NONE),
            text_or(pod, "status.nominatedNodeName", NONE),
            readiness_gates(pod).into(),
        ]
    }

    fn row_conditions(&self, pod: &Value) -> Vec<Value> {
        let message = match pod.str_at("status.phase") {
            "Succeeded" => "The pod has completed successfully.",
            "Failed" => "The pod failed.",
            _ => return Vec::new(),
        };
        let reason = pod.str_at("status.phase");
        vec![json!({"type": "Completed", "status": "True", "reason": reason, "message": message})]
    }
}

fn readiness_gates(pod: &Value) -> String {
    let gates = pod.items_at("spec.readinessGates");
    if gates.is_empty() {
        return NONE.to_owned();
    }
    let mut conditions = HashMap::new();
    for condition in pod.items_at("status.conditions") {
        conditions.entry(condition.str_at("type")).or_insert(condition.str_at("status"));
    }
    let is_met = |gate: &&Value| conditions.get(gate.str_at("conditionType")) == Some(&"True");
    format!("{}/{}", gates.iter().filter(is_met).count(), gates.len())
}

/// The number of restarts, and the end time of the run before the latest restart.
#[derive(Debug, Clone, Copy, Default)]
struct Restarts {
    count: i64,
    last: Option<Timestamp>,
}

impl Restarts {
    fn add(&mut self, status: &Value) {
        self.count += status.i64_at("restartCount").unwrap_or_default();
        let finished = meta::parse_time(status.str_at("lastState.terminated.finishedAt"));
        self.last = self.last.max(finished);
    }

    fn print(self, now: Timestamp) -> String {
        match self.last {
            Some(last) if self.count != 0 => {
                let ago = meta::human_duration(now.duration_since(last).as_secs());
                format!("{} ({ago} ago)", self.count)
            }
            _ => self.count.to_string(),
        }
    }
}

/// The summary of all container statuses.
struct Summary {
    ready: usize,
    total: usize,
    restarts: Restarts,
    reason: String,
}

impl Summary {
    fn of(pod: &Value) -> Summary {
        let phase = pod.str_at("status.phase");
        let mut summary = Summary {
            ready: 0,
            total: pod.items_at("spec.containers").len(),
            restarts: Restarts::default(),
            reason: match pod.str_at("status.reason") {
                "" => phase.to_owned(),
                reason => reason.to_owned(),
            },
        };
        let is_gated = |condition: &Value| {
            condition.str_at("type") == "PodScheduled" && condition.str_at("reason") == "SchedulingGated"
        };
        if pod.items_at("status.conditions").iter().any(is_gated) {
            summary.reason = "SchedulingGated".to_owned();
        }
        let (initializing, sidecars) = summary.add_init_containers(pod);
        if !initializing || is_true(pod, "Initialized") {
            // After initialization, only the restarts of sidecars count among those of init containers.
            summary.restarts = sidecars;
            summary.add_containers(pod);
        }
        if pod.is_terminating() {
            if pod.str_at("status.reason") == "NodeLost" {
                summary.reason = "Unknown".to_owned();
            } else if !matches!(phase, "Failed" | "Succeeded") {
                summary.reason = "Terminating".to_owned();
            }
        }
        summary
    }

    /// Adds the init containers up to the first that still delays the pod: one that is neither complete nor a started
    /// sidecar. Returns whether there is one, and the restarts of sidecars.
    fn add_init_containers(&mut self, pod: &Value) -> (bool, Restarts) {
        let specs = pod.items_at("spec.initContainers");
        let sidecars: HashMap<&str, bool> =
            specs.iter().map(|spec| (spec.str_at("name"), is_restartable_init(spec))).collect();
        self.total += specs.iter().filter(|spec| is_restartable_init(spec)).count();
        let mut sidecar_restarts = Restarts::default();
        for (index, status) in pod.items_at("status.initContainerStatuses").iter().enumerate() {
            let is_sidecar = sidecars.get(status.str_at("name")).copied().unwrap_or_default();
            self.restarts.add(status);
            if is_sidecar {
                sidecar_restarts.add(status);
            }
            let terminated = status.at("state.terminated");
            if terminated.is_some_and(|state| state.i64_at("exitCode").unwrap_or_default() == 0) {
                continue;
            }
            if is_sidecar && status.bool_at("started") {
                self.ready += usize::from(status.bool_at("ready"));
                continue;
            }
            let waiting = status.str_at("state.waiting.reason");
            self.reason = match terminated {
                Some(state) => format!("Init:{}", termination_reason(state)),
                None if !matches!(waiting, "" | "PodInitializing") => format!("Init:{waiting}"),
                None => format!("Init:{index}/{}", specs.len()),
            };
            return (true, sidecar_restarts);
        }
        (false, sidecar_restarts)
    }

    fn add_containers(&mut self, pod: &Value) {
        let mut has_running = false;
        let mut error_reason = None;
        for status in pod.items_at("status.containerStatuses").iter().rev() {
            self.restarts.add(status);
            let waiting = status.str_at("state.waiting.reason");
            if !waiting.is_empty() {
                self.reason = waiting.to_owned();
            } else if let Some(state) = status.at("state.terminated") {
                self.reason = termination_reason(state);
                if state.i64_at("exitCode").unwrap_or_default() != 0 {
                    error_reason = Some(self.reason.clone());
                }
            } else if status.bool_at("ready") && status.at("state.running").is_some() {
                has_running = true;
                self.ready += 1;
            }
        }
        // "Completed" is the reason of one container; it does not describe a pod with other containers.
        if self.reason == "Completed" {
            if has_running && is_true(pod, "Ready") {
                self.reason = "Running".to_owned();
            } else if let Some(reason) = error_reason {
                self.reason = reason;
            } else if has_running {
                self.reason = "NotReady".to_owned();
            }
        }
    }
}

fn termination_reason(state: &Value) -> String {
    match (state.str_at("reason"), state.i64_at("signal").unwrap_or_default()) {
        ("", 0) => format!("ExitCode:{}", state.i64_at("exitCode").unwrap_or_default()),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn very_many_gates_are_looked_up() {
        let gates: Vec<Value> =
            (0..30_000).map(|number| json!({"conditionType": format!("a.b/{number}")})).collect();
        let met = |number: usize| if number.is_multiple_of(2) { "True" } else { "False" };
        let conditions: Vec<Value> = (0..30_000)
            .map(|number| json!({"type": format!("a.b/{number}"), "status": met(number)}))
            .collect();
        let pod = json!({"spec": {"readinessGates": gates}, "status": {"conditions": conditions}});
        assert_eq!(readiness_gates(&pod), "15000/30000");
    }

    #[test]
    fn the_status_is_what_matters_most() {
        let now: Timestamp = "2024-01-01T01:00:00Z".parse().unwrap();
        let rows = [
            (json!({"status": {"phase": "Pending"}}), ["0/1", "Pending", "0"]),
            (json!({"status": {"phase": "Failed", "reason": "Evicted"}}), ["0/1", "Evicted", "0"]),
            (
                json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}],
                    "containerStatuses": [{"ready": true, "state": {"running": {}}, "restartCount": 2,
                        "lastState": {"terminated": {"finishedAt": "2024-01-01T00:55:00Z"}}}]}}),
                ["1/1", "Running", "2 (5m ago)"],
            ),
            (
                json!({"status": {"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": "ErrImagePull"}}}]}}),
                ["0/1", "ErrImagePull", "0"],
            ),
            (
                json!({"status": {"phase": "Running", "containerStatuses": [{"state": {"terminated": {"exitCode": 3}}, "restartCount": 1}]}}),
                ["0/1", "ExitCode:3", "1"],
            ),
            (
                json!({"status": {"phase": "Pending", "initContainerStatuses": [{"name": "i", "restartCount": 4, "state": {"running": {}}}]}}),
                ["0/1", "Init:0/2", "4"],
            ),
            (
                json!({"status": {"phase": "Pending", "initContainerStatuses": [{"name": "s", "started": true, "ready": true, "restartCount": 4, "state": {"running": {}}}]}}),
                ["1/2", "Pending", "4"],
            ),
            (
                json!({"status": {"phase": "Running", "containerStatuses": [
                    {"ready": true, "state": {"running": {}}}, {"state": {"terminated": {"reason": "Completed"}}}]}}),
                ["1/1", "NotReady", "0"],
            ),
            (
                json!({"metadata": {"deletionTimestamp": "2024-01-01T00:55:00Z"}, "status": {"phase": "Running"}}),
                ["0/1", "Terminating", "0"],
            ),
        ];
        for (mut pod, wanted) in rows {
            pod.set("spec.containers", json!([{"name": "c"}]));
            let init = pod.items_at("status.initContainerStatuses").first();
            let init = match init.map(|init| init.str_at("name")) {
                Some("i") => json!([{"name": "i"}, {"name": "j"}]),
                Some(_) => json!([{"name": "s", "restartPolicy": "Always"}]),
                None => json!([]),
            };
            pod.set("spec.initContainers", init);
            assert_eq!(PodTable.cells(&pod, now)[1..4], wanted.map(Value::from), "{pod}");
        }
    }
}
