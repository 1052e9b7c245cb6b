//! The table columns of pod groups.

use crate::printing::{NONE, age, column, name, text_or};
use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt};
use pintle_registry::{Cell, Column};

/// The columns.
pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        column("Policy", "How the pods are scheduled: as a gang, or each on its own."),
        column("Workload", "The workload that the group belongs to."),
        column("Status", "Whether the group is scheduled."),
        Column::age(),
    ]
}

/// The cells of one object.
pub(super) fn cells(group: &Value, now: Timestamp) -> Vec<Cell> {
    let policy = if group.at("spec.schedulingPolicy.gang").is_some() { "Gang" } else { "Basic" };
    let workload = match group.at("spec.podGroupTemplateRef") {
        Some(reference) => text_or(reference, "workload.workloadName", ""),
        None => NONE.into(),
    };
    vec![name(group), policy.into(), workload, status(group).into(), age(group, now)]
}

/// The reason of a disruption, or whether the group is scheduled.
fn status(group: &Value) -> &str {
    let condition = |condition_type: &str| {
        let mut conditions = group.items_at("status.conditions").iter().rev();
        conditions.find(|condition| condition.str_at("type") == condition_type)
    };
    if let Some(disruption) = condition("DisruptionTarget") {
        return disruption.str_at("reason");
    }
    match condition("PodGroupScheduled").map(|condition| condition.str_at("status")) {
        Some("True") => "Scheduled",
        Some(_) => "Unschedulable",
        None => "Pending",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn the_status_is_that_of_the_conditions() {
        let check = |conditions: Value, expected: &str| {
            assert_eq!(status(&json!({"status": {"conditions": conditions}})), expected);
        };
        check(json!([]), "Pending");
        check(json!([{"type": "PodGroupScheduled", "status": "False"}]), "Unschedulable");
        let scheduled = json!({"type": "PodGroupScheduled", "status": "True"});
        check(json!([scheduled]), "Scheduled");
        check(json!([scheduled, {"type": "DisruptionTarget", "reason": "Preempted"}]), "Preempted");
    }
}
