//! The `Available` condition of an API service.

use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt, json, meta};

/// A state of the `Available` condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Availability {
    pub(crate) status: &'static str,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl Availability {
    /// The condition of an API service that this server serves itself.
    pub(crate) fn local() -> Availability {
        Availability {
            status: "True",
            reason: "Local",
            message: "Local APIServices are always available".to_owned(),
        }
    }

    /// Sets the condition. Returns whether it changed.
    pub(crate) fn set(&self, object: &mut Value) -> bool {
        set_available(object, self.status, self.reason, &self.message)
    }
}

/// Whether the `Available` condition is `True`.
pub(crate) fn is_available(object: &Value) -> bool {
    condition(object, AVAILABLE).is_some_and(|condition| condition.str_at("status") == "True")
}

/// Sets the `Available` condition with a reason. Returns whether it changed.
fn set_available(object: &mut Value, status: &str, reason: &str, message: &str) -> bool {
    let wanted = [("status", status), ("reason", reason), ("message", message)];
    let mut conditions = object.items_at("status.conditions").to_vec();
    let now = meta::format_time(Timestamp::now());
    let at = conditions.iter().position(|condition| condition.str_at("type") == AVAILABLE);
    match at.and_then(|at| conditions.get_mut(at)) {
        Some(old) if wanted.iter().all(|(name, value)| old.str_at(name) == *value) => return false,
        Some(old) => {
            if old.str_at("status") != status {
                old.set("lastTransitionTime", now);
            }
            wanted.iter().for_each(|(name, value)| old.set(name, *value));
        }
        None => {
            let mut condition = json!({"type": AVAILABLE, "lastTransitionTime": now});
            wanted.iter().for_each(|(name, value)| condition.set(name, *value));
            conditions.push(condition);
        }
    }
    object.set("status.conditions", conditions);
    true
}

/// The type of the condition.
pub(crate) const AVAILABLE: &str = "Available";

/// The condition of a type.
pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object.items_at("status.conditions").iter().find(|condition| condition.str_at("type") == kind)
}
