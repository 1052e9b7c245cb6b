//! Writes the text of a patched object that no longer fits its type, for error messages.
//!
//! Kube-apiserver patches text: objects on the patch's path are written sorted by key; untouched parts stay as its
//! encoder wrote them, and inserted parts as the patch has them.

use pintle_machinery::{Map, Value, codec::json};
use pintle_schema::{SchemaRef, Type};
use std::collections::BTreeMap;

/// The objects of a tree that a patch touched.
#[derive(Debug, Default)]
pub(super) struct Touched {
    /// The touched members; without them, the value is one that the patch inserted.
    members: BTreeMap<String, Touched>,
    /// Whether the patch has an object here, which may be empty and leaves the other members as they are.
    merges: bool,
}

impl Touched {
    /// The objects that a merge patch contains.
    pub(super) fn by_merge_patch(patch: &Value) -> Touched {
        let members = patch.as_object().into_iter().flatten();
        Touched {
            members: members
                .map(|(name, value)| (name.to_string(), Touched::by_merge_patch(value)))
                .collect(),
            merges: patch.is_object(),
        }
    }

    /// The parents of the paths that a JSON patch names.
    pub(super) fn by_json_patch(patch: &Value) -> Touched {
        let mut touched = Touched::default();
        for operation in patch.as_array().into_iter().flatten() {
            for place in ["path", "from"] {
                let path = operation.get(place).and_then(Value::as_str).unwrap_or_default();
                let mut at = &mut touched;
                for step in path.split('/').skip(1) {
                    at = at.members.entry(step.replace("~1", "/").replace("~0", "~")).or_default();
                }
            }
        }
        touched
    }

    /// The text of a patched object. Recursion is as deep as the patch, whose depth is bounded like that of every body.
    pub(super) fn text(&self, patched: &Value, schema: SchemaRef<'_>) -> String {
        let mut out = Vec::with_capacity(1024);
        self.write(&mut out, patched, Some(schema));
        String::from_utf8(out).unwrap_or_default()
    }

    fn write(&self, out: &mut Vec<u8>, value: &Value, schema: Option<SchemaRef<'_>>) {
        match value {
            Value::Object(members) if self.merges || !self.members.is_empty() => {
                self.write_members(out, members, schema)
            }
            Value::Array(items) if !self.members.is_empty() => {
                let item = schema.filter(|schema| schema.ty() == Type::List).map(SchemaRef::item);
                out.push(b'[');
                for (index, value) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    let is_last = index + 1 == items.len();
                    let own = self.members.get(&index.to_string());
                    write_part(out, own.or_else(|| self.members.get("-").filter(|_| is_last)), value, item);
                }
                out.push(b']');
            }
            value => out.extend_from_slice(&json::encode_any(value)),
        }
    }

    fn write_members(&self, out: &mut Vec<u8>, members: &Map, schema: Option<SchemaRef<'_>>) {
        out.push(b'{');
        for (index, (name, value)) in members.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            json::write_string(out, name);
            out.push(b':');
            let below = schema.and_then(|schema| match schema.ty() {
                Type::Struct => schema.field(name).map(|field| field.ty()),
                Type::Map => Some(schema.value()),
                _ => None,
            });
            write_part(out, self.members.get(name.as_str()), value, below);
        }
        out.push(b'}');
    }
}

fn write_part(out: &mut Vec<u8>, touched: Option<&Touched>, value: &Value, schema: Option<SchemaRef<'_>>) {
    match (touched, schema) {
        (Some(touched), schema) => touched.write(out, value, schema),
        (None, Some(schema)) => write_untouched(out, value, schema),
        (None, None) => out.extend_from_slice(&json::encode_any(value)),
    }
}

/// Writes an untouched value in the field order of its type; the encoder knows that order for whole structs only.
fn write_untouched(out: &mut Vec<u8>, value: &Value, schema: SchemaRef<'_>) {
    match (schema.ty(), value) {
        (Type::List, Value::Array(items)) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_untouched(out, item, schema.item());
            }
            out.push(b']');
        }
        (Type::Map, Value::Object(members)) => {
            out.push(b'{');
            for (index, (name, member)) in members.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                json::write_string(out, name);
                out.push(b':');
                write_untouched(out, member, schema.value());
            }
            out.push(b'}');
        }
        (_, value) => json::encode_to(out, value, schema),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;
    use pintle_schema::Schema;

    #[test]
    fn objects_on_the_path_of_a_patch_are_sorted_and_others_unchanged() {
        let schema = Schema::builtin().by_kind("", "v1", "Pod").unwrap();
        let object = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"uid": "u", "name": "p"}, "spec": {
            "nodeName": 5, "containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "j"}]}, "status": {}});
        let merge = Touched::by_merge_patch(&json!({"spec": {"nodeName": 5}}));
        assert_eq!(
            merge.text(&object, schema),
            r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","uid":"u"},"spec":{"containers":[{"name":"c","image":"i","resources":{}},{"name":"d","image":"j","resources":{}}],"nodeName":5},"status":{}}"#
        );
        let empty = Touched::by_merge_patch(&json!({"spec": {}}));
        assert_eq!(
            empty.text(&object, schema),
            r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","uid":"u"},"spec":{"containers":[{"name":"c","image":"i","resources":{}},{"name":"d","image":"j","resources":{}}],"nodeName":5},"status":{}}"#
        );
        let operations = json!([{"op": "add", "path": "/spec/containers/1/image", "value": "j"}]);
        assert_eq!(
            Touched::by_json_patch(&operations).text(&object, schema),
            r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","uid":"u"},"spec":{"containers":[{"name":"c","image":"i","resources":{}},{"image":"j","name":"d"}],"nodeName":5},"status":{}}"#
        );
    }
}
