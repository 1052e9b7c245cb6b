//! Fields that lists and watches can select by.

use pintle_machinery::{Value, ValueExt};

/// A field of a kind that `fieldSelector` knows besides `metadata.name` and `metadata.namespace`
/// (<https://kubernetes.io/docs/concepts/overview/working-with-objects/field-selectors/>).
#[derive(Debug, Clone)]
pub struct SelectableField {
    /// The name in selectors, such as `spec.nodeName`.
    pub name: String,
    /// The field's value in an object, as text; "" when absent.
    pub value: fn(&Value, &str) -> String,
    /// Whether watchers that select one value of it are found by an index. For fields that many watchers select by.
    pub trigger: bool,
    /// Whether only selectors of another version know it. All versions of a resource have the same fields in the same
    /// order, since what is kept of an object is kept once.
    pub of_other_version: bool,
}

impl SelectableField {
    /// A field whose selector name is its path in the object; a number or boolean is printed, an absent one is "".
    pub fn new(name: impl Into<String>) -> SelectableField {
        SelectableField { name: name.into(), value: text_at, trigger: false, of_other_version: false }
    }

    /// The same, with an index for watchers.
    #[must_use]
    pub fn with_trigger(mut self) -> SelectableField {
        self.trigger = true;
        self
    }
}

fn text_at(object: &Value, path: &str) -> String {
    match object.at(path) {
        None => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}
