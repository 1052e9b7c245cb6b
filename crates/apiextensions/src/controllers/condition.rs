//! Reads and sets conditions of a definition.

use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt, json, meta};

/// The content of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Says<'a> {
    pub(crate) condition_type: &'a str,
    pub(crate) status: &'a str,
    pub(crate) reason: &'a str,
    pub(crate) message: &'a str,
}

/// Sets a condition. The transition time changes only with the status.
pub(crate) fn set(definition: &mut Value, says: Says<'_>) {
    let now = meta::format_time(Timestamp::now());
    let mut conditions = definition.items_at("status.conditions").to_vec();
    let old = conditions.iter_mut().find(|old| old.str_at("type") == says.condition_type);
    match old {
        Some(old) => {
            if old.str_at("status") != says.status {
                old.set("status", says.status);
                old.set("lastTransitionTime", now);
            }
            old.set("reason", says.reason);
            old.set("message", says.message);
        }
        None => conditions.push(json!({
            "type": says.condition_type,
            "status": says.status,
            "lastTransitionTime": now,
            "reason": says.reason,
            "message": says.message,
        })),
    }
    definition.set("status.conditions", conditions);
}

/// Removes a condition.
pub(crate) fn remove(definition: &mut Value, condition_type: &str) {
    if let Some(conditions) = definition.at_mut("status.conditions").and_then(Value::as_array_mut) {
        conditions.retain(|condition| condition.str_at("type") != condition_type);
    }
}

/// A condition of a definition.
pub(crate) fn find<'a>(definition: &'a Value, condition_type: &str) -> Option<&'a Value> {
    let conditions = definition.items_at("status.conditions").iter();
    conditions.into_iter().find(|condition| condition.str_at("type") == condition_type)
}

/// Whether a condition has the status `True`.
pub(crate) fn is_true(definition: &Value, condition_type: &str) -> bool {
    find(definition, condition_type).is_some_and(|condition| condition.str_at("status") == "True")
}
