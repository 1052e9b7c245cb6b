//! Reads and changes object metadata on the tree
//! (<https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md#metadata>).

use crate::{Value, ValueExt};
use jiff::Timestamp;

pub use crate::duration::{human_duration, translate_timestamp_since};

/// The end of the names of objects in static manifests, which objects of the API cannot have
/// (<https://kep.k8s.io/5793>).
pub const STATIC_MANIFEST_SUFFIX: &str = ".static.k8s.io";

/// Accessors for `metadata` of an object.
pub trait ObjectMeta {
    /// `metadata.name`.
    fn name(&self) -> &str;
    /// `metadata.namespace`.
    fn namespace(&self) -> &str;
    /// `metadata.uid`.
    fn uid(&self) -> &str;
    /// `metadata.resourceVersion`.
    fn resource_version(&self) -> &str;
    /// `metadata.generation`, 0 when absent.
    fn generation(&self) -> i64;
    /// Sets `metadata.generation`.
    fn set_generation(&mut self, generation: i64);
    /// Whether `metadata.deletionTimestamp` is set.
    fn is_terminating(&self) -> bool;
    /// `metadata.finalizers`.
    fn finalizers(&self) -> Vec<&str>;
    /// A label's value.
    fn label(&self, key: &str) -> Option<&str>;
    /// An annotation's value.
    fn annotation(&self, key: &str) -> Option<&str>;
}

impl ObjectMeta for Value {
    fn name(&self) -> &str {
        self.str_at("metadata.name")
    }

    fn namespace(&self) -> &str {
        self.str_at("metadata.namespace")
    }

    fn uid(&self) -> &str {
        self.str_at("metadata.uid")
    }

    fn resource_version(&self) -> &str {
        self.str_at("metadata.resourceVersion")
    }

    fn generation(&self) -> i64 {
        self.i64_at("metadata.generation").unwrap_or_default()
    }

    fn set_generation(&mut self, generation: i64) {
        self.set("metadata.generation", generation);
    }

    fn is_terminating(&self) -> bool {
        self.at("metadata.deletionTimestamp").is_some()
    }

    fn finalizers(&self) -> Vec<&str> {
        self.items_at("metadata.finalizers").iter().filter_map(Value::as_str).collect()
    }

    fn label(&self, key: &str) -> Option<&str> {
        self.at("metadata.labels")?.field(key)?.as_str()
    }

    fn annotation(&self, key: &str) -> Option<&str> {
        self.at("metadata.annotations")?.field(key)?.as_str()
    }
}

/// Formats a time as `metav1.Time`: RFC 3339, UTC, whole seconds.
pub fn format_time(time: Timestamp) -> String {
    // Before 1970 the fraction is negative.
    let seconds = time.as_second() - i64::from(time.subsec_nanosecond() < 0);
    Timestamp::from_second(seconds).unwrap_or(time).to_string()
}

/// Parses an RFC 3339 time.
pub fn parse_time(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}
