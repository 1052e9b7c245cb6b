//! One watch of a server, from its request to its end.

use super::{
    form::Form,
    history::{Event, Kind},
    resource::version,
};
use crate::Result;
use pintle_harness::Lines;
use serde_json::Value;
use std::time::Instant;

/// The end of a watch whose time is over.
pub(super) const OVER: &str = "over";
/// The end of a watch that its client has left.
pub(super) const LEFT: &str = "left";
/// A part of the end of a watch whose events were compacted.
pub(super) const EXPIRED: &str = "\"code\":410";

/// Calls `each` with every event, until it returns `false` or the watch ends. Returns how it ended: the status code of
/// a refusal or of an ERROR event is in the text.
pub(super) fn watch(lines: Result<Lines>, form: Form, mut each: impl FnMut(Event) -> bool) -> String {
    let mut lines = match lines {
        Ok(lines) => lines,
        Err(error) => return error.to_string(),
    };
    loop {
        let mut event = match lines.next_json() {
            Ok(Some(event)) => event,
            Ok(None) => return OVER.to_owned(),
            Err(error) => return error.to_string(),
        };
        if event["type"] == "ERROR" {
            return event.to_string();
        }
        let object = form.objects(&mut event["object"]).remove(0);
        let ends_initial_events = object["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true";
        let (kind, object) = match event["type"].as_str().unwrap() {
            "ADDED" => (Kind::Added, object),
            "MODIFIED" => (Kind::Modified, object),
            "DELETED" => (Kind::Deleted, object),
            "BOOKMARK" => (Kind::Bookmark { ends_initial_events }, object),
            other => return format!("{other} {object}"),
        };
        let version = version(&object);
        let object = if matches!(kind, Kind::Bookmark { .. }) { Value::Null } else { object };
        if !each(Event { kind, version, object, seen: Instant::now() }) {
            return LEFT.to_owned();
        }
    }
}
