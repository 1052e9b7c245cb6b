//! The table columns of CSI drivers.

use crate::printing::{NONE, UNSET, age, boolean, booleans, column, joined, name};
use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt};
use pintle_registry::{Cell, Column};

/// The columns.
pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        booleans("AttachRequired", "Whether volumes are attached to a node first."),
        booleans("PodInfoOnMount", "Whether the driver is told about the pod."),
        booleans("StorageCapacity", "Whether pods go where there is room left."),
        column("TokenRequests", "For whom the driver gets tokens of the pod."),
        booleans("RequiresRepublish", "Whether the driver is called again and again."),
        column("Modes", "How long its volumes live."),
        Column::age(),
    ]
}

/// The cells of one object.
pub(super) fn cells(driver: &Value, now: Timestamp) -> Vec<Cell> {
    let tokens = driver.at("spec.tokenRequests").and_then(Value::as_array).map(|requests| {
        let audiences: Vec<&str> = requests.iter().map(|request| request.str_at("audience")).collect();
        audiences.join(",")
    });
    let modes = joined(driver.items_at("spec.volumeLifecycleModes"), ",");
    vec![
        name(driver),
        driver.at("spec.attachRequired").and_then(Value::as_bool).unwrap_or(true).into(),
        boolean(driver, "spec.podInfoOnMount"),
        boolean(driver, "spec.storageCapacity"),
        tokens.unwrap_or_else(|| UNSET.to_owned()).into(),
        boolean(driver, "spec.requiresRepublish"),
        if modes.is_empty() { NONE.to_owned() } else { modes }.into(),
        age(driver, now),
    ]
}
