//! Records events about objects, which `kubectl describe` shows
//! (<https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/>).

use crate::objects::{core, write_options};
use jiff::{SignedDuration, Timestamp};
use pintle_machinery::{Value, ValueExt, json, meta::ObjectMeta};
use pintle_registry::Registry;
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

/// The time for which an event is not recorded again.
const QUIET: SignedDuration = SignedDuration::from_mins(6);
/// The largest number of remembered events. When there are more, all are forgotten.
const REMEMBERED: usize = 4096;

/// Records the events of one controller.
pub(crate) struct EventRecorder {
    controller: &'static str,
    hostname: String,
    recent: Mutex<HashMap<String, Timestamp>>,
}

/// An event: a warning, by its reason, the action that failed, and a note for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Warning {
    pub(crate) reason: &'static str,
    pub(crate) action: &'static str,
    pub(crate) note: String,
}

impl EventRecorder {
    /// Creates the recorder of a controller in the server with this hostname.
    pub(crate) fn new(controller: &'static str, hostname: &str) -> EventRecorder {
        EventRecorder { controller, hostname: hostname.to_owned(), recent: Mutex::default() }
    }

    /// Records a warning about an object, unless the same one was recorded a short time ago. A failure is only logged.
    pub(crate) async fn warn(
        &self,
        registry: &dyn Registry,
        object: &Value,
        now: Timestamp,
        warning: Warning,
    ) {
        if !self.is_new(object, now, &warning) {
            return;
        }
        let namespace = if object.namespace().is_empty() { "default" } else { object.namespace() };
        let event = self.event(object, now, &warning);
        if let Err(status) = registry.create(&core("events"), namespace, event, write_options()).await {
            tracing::debug!(reason = warning.reason, error = %status, "an event could not be recorded");
        }
    }

    fn is_new(&self, object: &Value, now: Timestamp, warning: &Warning) -> bool {
        let key = [object.uid(), warning.reason, &warning.note].join("/");
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.len() >= REMEMBERED {
            recent.clear();
        }
        recent.insert(key, now).is_none_or(|last| now.duration_since(last) > QUIET)
    }

    fn event(&self, object: &Value, now: Timestamp, warning: &Warning) -> Value {
        let mut involved = json!({"kind": object.str_at("kind"), "apiVersion": object.str_at("apiVersion")});
        for field in ["namespace", "name", "uid", "resourceVersion"] {
            let value = object.str_at(&format!("metadata.{field}"));
            if !value.is_empty() {
                involved.set(field, value);
            }
        }
        json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": format!("{}.{:x}", object.name(), now.as_nanosecond())},
            "involvedObject": involved,
            "reason": warning.reason,
            "message": warning.note.as_str(),
            "type": "Warning",
            "eventTime": format!("{now:.6}"),
            "action": warning.action,
            "reportingComponent": self.controller,
            "reportingInstance": format!("{}-{}", self.controller, self.hostname),
        })
    }
}

/// The part of an object that its events tell of.
pub(crate) fn referenced(object: &Value) -> Value {
    let mut part = json!({"kind": object.str_at("kind"), "apiVersion": object.str_at("apiVersion")});
    for field in ["metadata.namespace", "metadata.name", "metadata.uid", "metadata.resourceVersion"] {
        part.set(field, object.str_at(field));
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_registry::testing::{MemoryRegistry, now};

    #[test]
    fn a_warning_is_recorded_once_in_a_while() {
        let (registry, recorder) = (MemoryRegistry::default(), EventRecorder::new("a-controller", "host"));
        let metadata = json!({"name": "s", "namespace": "n", "uid": "u", "resourceVersion": "5"});
        let service = json!({"kind": "Service", "apiVersion": "v1", "metadata": metadata});
        for (second, note) in [(1, "a"), (2, "a"), (3, "b"), (400, "a")] {
            let warning = Warning { reason: "Odd", action: "Looking", note: note.to_owned() };
            now(recorder.warn(&registry, &service, Timestamp::from_second(second).unwrap(), warning));
        }
        let events = now(registry.list(&core("events"), "n")).unwrap();
        let notes: Vec<&str> = events.iter().map(|event| event.str_at("message")).collect();
        assert_eq!(notes, ["a", "a", "b"], "by name");
        let event = &events[0];
        assert_eq!((event.name(), event.str_at("eventTime")), ("s.3b9aca00", "1970-01-01T00:00:01.000000Z"));
        assert_eq!(event["involvedObject"]["resourceVersion"], "5");
        assert_eq!(event.str_at("reportingInstance"), "a-controller-host");
    }
}
