//! Records events about objects, which `kubectl describe` shows
//! (<https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/>).

use crate::objects::{core, write_options};
use jiff::{SignedDuration, Timestamp};
use pintle_machinery::{Status, StatusReason, Value, ValueExt, json, meta::ObjectMeta};
use pintle_registry::Registry;
use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
};

/// The time after which an event that was not observed again is over.
const FINISHED: SignedDuration = SignedDuration::from_mins(6);
/// The time after which the count of an event that goes on is written again.
const REFRESHED: SignedDuration = SignedDuration::from_mins(30);
/// The largest number of remembered events. When there are more, all are forgotten.
const REMEMBERED: usize = 4096;

/// Records the events of one controller. An event that is observed again becomes a series, whose count is written at its
/// second observation, now and then while it goes on, and at its end.
pub(crate) struct EventRecorder {
    controller: &'static str,
    hostname: String,
    recent: Mutex<HashMap<String, Recent>>,
    /// The latest time in a name, in nanoseconds: events of one object have different names.
    latest: AtomicI64,
}

/// An event: a warning, by its reason, the action that failed, and a note for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Warning {
    pub(crate) reason: &'static str,
    pub(crate) action: &'static str,
    pub(crate) note: String,
}

/// An event that was recorded a short time ago.
struct Recent {
    event: Value,
    count: i64,
    observed: Timestamp,
    written: Timestamp,
}

impl Recent {
    /// The event with its series, to be written now.
    fn written(&mut self, now: Timestamp) -> Value {
        self.written = now;
        let mut event = self.event.clone();
        if self.count > 1 {
            let observed = format!("{:.6}", self.observed);
            event.set("series", json!({"count": self.count, "lastObservedTime": observed}));
        }
        event
    }
}

impl EventRecorder {
    /// Creates the recorder of a controller in the server with this hostname.
    pub(crate) fn new(controller: &'static str, hostname: &str) -> EventRecorder {
        EventRecorder {
            controller,
            hostname: hostname.to_owned(),
            recent: Mutex::default(),
            latest: AtomicI64::default(),
        }
    }

    /// Records a warning about an object. A failure is only logged.
    pub(crate) async fn warn(
        &self,
        registry: &dyn Registry,
        object: &Value,
        now: Timestamp,
        warning: Warning,
    ) {
        if let Some(event) = self.observe(object, now, &warning) {
            record(registry, event).await;
        }
    }

    /// Writes the counts of events that are over, or were not written for long. To be called at intervals.
    pub(crate) async fn refresh(&self, registry: &dyn Registry, now: Timestamp) {
        let mut due = Vec::new();
        self.recent.lock().unwrap_or_else(PoisonError::into_inner).retain(|_, recent| {
            let is_over = now.duration_since(recent.observed) > FINISHED;
            let is_old = now.duration_since(recent.written) >= REFRESHED;
            if recent.count > 1 && (is_over || is_old) {
                due.push(recent.written(now));
            }
            !is_over
        });
        for event in due {
            record(registry, event).await;
        }
    }

    /// Counts a warning; returns the event if it is to be written. Its note is that of the first observation.
    fn observe(&self, object: &Value, now: Timestamp, warning: &Warning) -> Option<Value> {
        let of_object =
            ["kind", "metadata.namespace", "metadata.name", "metadata.uid", "metadata.resourceVersion"];
        let parts = of_object.map(|field| object.str_at(field));
        let key = [&parts[..], &[warning.reason, warning.action]].concat().join("/");
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.len() >= REMEMBERED {
            recent.clear();
        }
        match recent.entry(key) {
            Entry::Occupied(mut known) => {
                let known = known.get_mut();
                (known.count, known.observed) = (known.count.saturating_add(1), now);
                (known.count == 2).then(|| known.written(now))
            }
            Entry::Vacant(vacant) => {
                let event = self.event(object, now, warning);
                let first = Recent { event, count: 1, observed: now, written: now };
                Some(vacant.insert(first).written(now))
            }
        }
    }

    /// A time for a name: now, or the time after that of the last name.
    fn time_of_name(&self, now: Timestamp) -> i64 {
        let now = i64::try_from(now.as_nanosecond()).unwrap_or_default();
        let after = |latest: i64| now.max(latest.saturating_add(1));
        let latest =
            self.latest.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |latest| Some(after(latest)));
        after(latest.unwrap_or_else(|latest| latest))
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
            "metadata": {
                "name": format!("{}.{:x}", object.name(), self.time_of_name(now)),
                "namespace": if object.namespace().is_empty() { "default" } else { object.namespace() },
            },
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

/// Writes an event, whose series may have been written before.
async fn record(registry: &dyn Registry, event: Value) {
    let reason = event.str_at("reason").to_owned();
    let result = match event.at("series").cloned() {
        Some(series) => {
            let with_series = |mut stored: Value| {
                stored.set("series", series.clone());
                Ok(stored)
            };
            let (namespace, name) = (event.namespace().to_owned(), event.name().to_owned());
            let updated = registry
                .update(&core("events"), &namespace, &name, Box::new(with_series), write_options())
                .await;
            match updated {
                // Events expire.
                Err(status) if status.reason == StatusReason::NotFound => create(registry, event).await,
                updated => updated.map(drop),
            }
        }
        None => create(registry, event).await,
    };
    if let Err(status) = result {
        tracing::debug!(reason, error = %status, "an event could not be recorded");
    }
}

async fn create(registry: &dyn Registry, event: Value) -> Result<(), Status> {
    let namespace = event.namespace().to_owned();
    registry.create(&core("events"), &namespace, event, write_options()).await.map(drop)
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
    use pintle_registry::{
        DeleteOptions,
        testing::{MemoryRegistry, now},
    };

    #[test]
    fn a_warning_that_is_repeated_becomes_a_series() {
        let (registry, recorder) = (MemoryRegistry::default(), EventRecorder::new("a-controller", "host"));
        let metadata = json!({"name": "s", "namespace": "n", "uid": "u", "resourceVersion": "5"});
        let service = json!({"kind": "Service", "apiVersion": "v1", "metadata": metadata});
        let at = |minute: i64| Timestamp::from_second(minute * 60).unwrap();
        let warn = |minute: i64, reason: &'static str, note: &str| {
            let warning = Warning { reason, action: "Looking", note: note.to_owned() };
            now(recorder.warn(&registry, &service, at(minute), warning));
        };
        let told = || {
            let events = now(registry.list(&core("events"), "n")).unwrap();
            let odd = events.iter().filter(|event| event.str_at("reason") == "Odd");
            let told = odd.map(|event| {
                let count = event.at("series.count").and_then(Value::as_i64).unwrap_or_default();
                (event.str_at("message").to_owned(), count)
            });
            told.collect::<Vec<_>>()
        };
        let of = |note: &str, count: i64| (note.to_owned(), count);
        warn(1, "Odd", "a");
        assert_eq!(told(), [of("a", 0)]);
        let event = &now(registry.list(&core("events"), "n")).unwrap()[0];
        assert_eq!((event.name(), event.str_at("eventTime")), ("s.df8475800", "1970-01-01T00:01:00.000000Z"));
        assert_eq!(event["involvedObject"]["resourceVersion"], "5");
        assert_eq!(event.str_at("reportingInstance"), "a-controller-host");

        // The note does not count; the number of observations is written when there are two.
        warn(1, "Even", "a");
        assert_eq!(now(registry.list(&core("events"), "n")).unwrap().len(), 2, "names differ");
        warn(4, "Odd", "b");
        assert_eq!(told(), [of("a", 2)]);
        for minute in [7, 10, 13, 16, 19, 22, 25, 28, 31, 34] {
            now(recorder.refresh(&registry, at(minute)));
            warn(minute, "Odd", "b");
            assert_eq!(told(), [of("a", if minute < 34 { 2 } else { 11 })], "{minute}");
        }
        // An event that expired is there again with its last count, and then the next one is new.
        now(registry.delete(&core("events"), "n", "s.df8475800", DeleteOptions::default())).unwrap();
        now(recorder.refresh(&registry, at(40)));
        assert_eq!(told(), []);
        now(recorder.refresh(&registry, at(41)));
        assert_eq!(told(), [of("a", 12)]);
        warn(42, "Odd", "c");
        assert_eq!(told(), [of("c", 0), of("a", 12)]);
    }
}
