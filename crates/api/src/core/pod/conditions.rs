//! Sets the pod conditions that belong to the server.

use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt, json, meta};

/// A condition of a pod.
pub(super) struct Condition<'a> {
    pub(super) condition_type: &'a str,
    pub(super) status: &'a str,
    pub(super) reason: &'a str,
    pub(super) message: &'a str,
}

/// Adds the condition of a pod with scheduling gates.
pub(super) fn add_scheduling_gated(pod: &mut Value, now: Timestamp) {
    if pod.items_at("spec.schedulingGates").is_empty() {
        return;
    }
    let condition = Condition {
        condition_type: "PodScheduled",
        status: "False",
        reason: "SchedulingGated",
        message: "Scheduling is blocked due to non-empty scheduling gates",
    };
    update(pod, &condition, now);
}

/// Sets a condition. The transition time changes only with the status.
pub(super) fn update(pod: &mut Value, condition: &Condition<'_>, now: Timestamp) {
    let mut new = json!({
        "type": condition.condition_type,
        "status": condition.status,
        "lastProbeTime": null,
        "lastTransitionTime": meta::format_time(now),
    });
    for (field, text) in [("reason", condition.reason), ("message", condition.message)] {
        if !text.is_empty() {
            new.set(field, text);
        }
    }
    let status = pod.object_at_mut("status");
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(conditions) = conditions.as_array_mut() else { return };
    match conditions.iter_mut().find(|old| old.str_at("type") == condition.condition_type) {
        Some(old) => {
            if old.str_at("status") == condition.status
                && let Some(time) = old.at("lastTransitionTime")
            {
                new.set("lastTransitionTime", time.clone());
            }
            *old = new;
        }
        None => conditions.push(new),
    }
}

/// Whether a condition of a type is true.
pub(super) fn is_true(pod: &Value, condition_type: &str) -> bool {
    pod.items_at("status.conditions")
        .iter()
        .any(|condition| condition.str_at("type") == condition_type && condition.str_at("status") == "True")
}
