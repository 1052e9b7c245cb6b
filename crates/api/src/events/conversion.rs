//! Converts between the two forms of an event. They are the same objects: the newer group renamed fields, and marks
//! those that only older recorders write as deprecated. Events are stored in the core group's form.

use pintle_machinery::{Map, Value};
use pintle_registry::Conversion;

/// The core name of a field, and its newer name.
const RENAMED: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// The conversion of `events.k8s.io/v1` events.
pub const CONVERSION: Conversion = Conversion { to_storage: to_core, from_storage: from_core };

/// Converts a newer event to a core one.
pub fn to_core(event: Value) -> Value {
    convert(event, "v1", |name| RENAMED.iter().find(|(_, new)| *new == name).map(|(core, _)| *core))
}

/// Converts a core event to a newer one.
pub fn from_core(event: Value) -> Value {
    convert(event, "events.k8s.io/v1", |name| {
        RENAMED.iter().find(|(core, _)| *core == name).map(|(_, new)| *new)
    })
}

fn convert(event: Value, api_version: &str, rename: impl Fn(&str) -> Option<&'static str>) -> Value {
    let Value::Object(members) = event else {
        return event;
    };
    let mut converted: Map = members
        .into_iter()
        // Core writes empty texts that the newer group omits.
        .filter(|(_, value)| value.as_str() != Some(""))
        .map(|(name, value)| match rename(&name) {
            Some(renamed) => (renamed.into(), value),
            None => (name, value),
        })
        .collect();
    converted.insert("apiVersion", api_version.into());
    Value::Object(converted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn shapes_convert_into_each_other() {
        let core = json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"},
            "involvedObject": {"kind": "Pod"}, "message": "m", "source": {"component": "c"}, "count": 3,
            "firstTimestamp": "2024-01-01T00:00:00Z", "lastTimestamp": null, "type": "Normal",
            "reportingComponent": "example.com/ctl", "series": {"count": 2},
        });
        let new = json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"},
            "regarding": {"kind": "Pod"}, "note": "m", "deprecatedSource": {"component": "c"}, "deprecatedCount": 3,
            "deprecatedFirstTimestamp": "2024-01-01T00:00:00Z", "deprecatedLastTimestamp": null, "type": "Normal",
            "reportingController": "example.com/ctl", "series": {"count": 2},
        });
        assert_eq!(from_core(core.clone()), new);
        assert_eq!(to_core(new), core);
        assert_eq!(
            from_core(json!({"reportingComponent": "", "reportingInstance": ""})),
            json!({
                "apiVersion": "events.k8s.io/v1"
            })
        );
    }
}
