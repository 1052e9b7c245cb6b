//! The forms of responses: they show an object, or its metadata alone, each of them also as the row of a table.

use super::{random::Random, resource::content};
use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Form {
    is_table: bool,
    /// Whether the whole object is shown.
    pub(super) is_whole: bool,
}

impl Form {
    pub(super) const PLAIN: Form = Form { is_table: false, is_whole: true };

    pub(super) fn random(random: &mut Random) -> Form {
        Form { is_table: random.chance(30), is_whole: random.chance(70) }
    }

    /// The media type of a response with an object, an event or, with `List` as suffix, a list.
    pub(super) fn media_type(self, suffix: &str) -> String {
        let kind = match (self.is_table, self.is_whole) {
            (true, _) => "Table",
            (false, true) => return "application/json".to_owned(),
            (false, false) => &format!("PartialObjectMetadata{suffix}"),
        };
        format!("application/json;as={kind};v=v1;g=meta.k8s.io")
    }

    /// The parameter of a request that asks for this form.
    pub(super) fn query(self) -> &'static str {
        match self {
            Form { is_table: true, is_whole: true } => "includeObject=Object",
            _ => "includeObject=Metadata",
        }
    }

    /// The objects of a list, or the one object.
    pub(super) fn objects(self, response: &mut Value) -> Vec<Value> {
        let items = if self.is_table { "rows" } else { "items" };
        let Some(items) = response.get_mut(items) else { return vec![response.take()] };
        // A table without rows may have null.
        let items = items.as_array_mut().into_iter().flat_map(|items| items.drain(..));
        items.map(|mut item| if self.is_table { item["object"].take() } else { item }).collect()
    }

    /// What this form shows of an object.
    pub(super) fn part(self, object: Value) -> Value {
        match self.is_whole {
            true => content(object),
            false => json!({"metadata": object["metadata"]}),
        }
    }
}
