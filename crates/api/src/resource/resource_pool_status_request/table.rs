//! The table columns of resource pool status requests.

use crate::printing::{NONE, column, integer, integers, name, since, text};
use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt};
use pintle_registry::{Cell, Column};

/// The columns.
pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        column("Driver", "The driver of the pools."),
        column("Total", "The number of devices in the pools."),
        column("Available", "The number of devices that can be allocated."),
        column("Allocated", "The number of devices that are allocated."),
        column("Unavailable", "The number of devices that cannot be allocated."),
        column("Errors", "The number of pools that are malformed."),
        integers("Pools", "The number of pools."),
        column("Status", "Whether the request is answered."),
        column("Completed", "The time since the answer."),
    ]
}

/// The cells of one object.
pub(super) fn cells(request: &Value, now: Timestamp) -> Vec<Cell> {
    let mut conditions = request.items_at("status.conditions").iter();
    let ended = conditions.find(|condition| {
        condition.str_at("status") == "True" && ["Complete", "Failed"].contains(&condition.str_at("type"))
    });
    let state = ended.map_or("Pending", |condition| condition.str_at("type"));
    let pools = request.items_at("status.pools");
    let count = request.i64_at("status.poolCount").unwrap_or_default();
    let all = i64::try_from(pools.len()).unwrap_or(i64::MAX);
    let status = match state {
        "Complete" if count > all => format!("Complete ({all}/{count} pools)"),
        state => state.to_owned(),
    };
    let has_counts = request.at("status").is_some() && state != "Failed";
    let counted = |value: i64| if has_counts { value.to_string() } else { "-".to_owned() };
    let sum = |field: &str| {
        let sum: i64 = pools.iter().filter_map(|pool| pool.i64_at(field)).sum();
        Cell::from(counted(sum))
    };
    let errors = pools.iter().filter(|pool| pool.at("validationError").is_some()).count();
    let completed = match ended {
        Some(condition) if state == "Complete" => since(condition, "lastTransitionTime", now),
        _ => NONE.to_owned(),
    };
    vec![
        name(request),
        text(request, "spec.driver"),
        sum("totalDevices"),
        sum("availableDevices"),
        sum("allocatedDevices"),
        sum("unavailableDevices"),
        counted(i64::try_from(errors).unwrap_or(i64::MAX)).into(),
        integer(request, "status.poolCount"),
        status.into(),
        completed.into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn counts_are_sums() {
        let row = |status: Value| {
            let request = json!({"metadata": {"name": "a"}, "spec": {"driver": "d"}, "status": status});
            cells(&request, Timestamp::default())
        };
        assert_eq!(
            row(Value::Null),
            json!(["a", "d", "-", "-", "-", "-", "-", 0, "Pending", "<none>"]).as_array().unwrap().clone()
        );
        let pools =
            json!([{"totalDevices": 2}, {"totalDevices": 3, "availableDevices": 1, "validationError": "x"}]);
        let complete =
            json!({"type": "Complete", "status": "True", "lastTransitionTime": "1970-01-01T00:00:00Z"});
        assert_eq!(
            row(json!({"poolCount": 3, "pools": pools, "conditions": [complete]})),
            json!(["a", "d", "5", "1", "0", "0", "1", 3, "Complete (2/3 pools)", "0s"])
                .as_array()
                .unwrap()
                .clone()
        );
    }
}
