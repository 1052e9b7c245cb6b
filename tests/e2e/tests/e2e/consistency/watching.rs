//! One watch of a server, from its request to its end.

use super::history::{Event, Kind};
use pintle_harness::Client;
use serde_json::Value;
use std::time::Instant;

/// The end of a watch whose time is over.
pub(super) const OVER: &str = "over";
/// The end of a watch that its client has left.
pub(super) const LEFT: &str = "left";

/// Calls `each` with every event, until it returns `false` or the watch ends. Returns how it ended: the status code of
/// a refusal or of an ERROR event is in the text.
pub(super) fn watch(client: &Client, path: &str, mut each: impl FnMut(Event) -> bool) -> String {
    let mut lines = match client.lines(path) {
        Ok(lines) => lines,
        Err(error) => return error.to_string(),
    };
    loop {
        let mut event = match lines.next_json() {
            Ok(Some(event)) => event,
            Ok(None) => return OVER.to_owned(),
            Err(error) => return error.to_string(),
        };
        let object = event["object"].take();
        let ends_initial_events = object["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true";
        let (kind, object) = match event["type"].as_str().unwrap() {
            "ADDED" => (Kind::Added, object),
            "MODIFIED" => (Kind::Modified, object),
            "DELETED" => (Kind::Deleted, object),
            "BOOKMARK" => (Kind::Bookmark { ends_initial_events }, object),
            _ => return object.to_string(),
        };
        let version = super::resource::version(&object);
        let object = if matches!(kind, Kind::Bookmark { .. }) { Value::Null } else { object };
        if !each(Event { kind, version, object, seen: Instant::now() }) {
            return LEFT.to_owned();
        }
    }
}
