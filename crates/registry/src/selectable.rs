//! Declares the fields that `fieldSelector` supports.

use pintle_machinery::{Value, ValueExt};

/// A field of a kind that `fieldSelector` supports besides `metadata.name` and `metadata.namespace`
/// (<https://kubernetes.io/docs/concepts/overview/working-with-objects/field-selectors/>).
#[derive(Debug, Clone)]
pub struct SelectableField {
    /// The name in selectors, such as `spec.nodeName`.
    pub name: String,
    /// The field's value in an object, as text; "" when absent.
    pub value: fn(&Value, &str) -> String,
    /// Whether watchers that select one value of this field are indexed by it. For fields that many watchers select by.
    pub trigger: bool,
    /// Whether the field is selectable only in another version. All versions of a resource declare the same fields in
    /// the same order, because the cache keeps the values of an object once.
    pub of_other_version: bool,
}

impl SelectableField {
    /// A field whose selector name is its path in the object. A number or a boolean is converted to text; an absent
    /// field is "".
    pub fn new(name: impl Into<String>) -> SelectableField {
        SelectableField { name: name.into(), value: text_at, trigger: false, of_other_version: false }
    }

    /// The same field, with an index for watchers.
    #[must_use]
    pub fn with_trigger(mut self) -> SelectableField {
        self.trigger = true;
        self
    }
}

fn text_at(object: &Value, path: &str) -> String {
    match object.at(path) {
        None => String::new(),
        Some(Value::String(text)) => text.to_string(),
        Some(other) => other.to_string(),
    }
}
