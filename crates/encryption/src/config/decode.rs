//! Decodes YAML or JSON to a tree, strictly.

use pintle_machinery::{
    Value,
    codec::{ConfigKind, StrictProblem, json, yaml},
};
use pintle_schema::{FieldSpec, ListType, NodeId, Omit, Schema, SchemaBuilder, StructSpec, Type};
use std::sync::LazyLock;
use zeroize::{Zeroize, Zeroizing};

const KIND: ConfigKind =
    ConfigKind { kind: "EncryptionConfiguration", group: "apiserver.config.k8s.io", versions: &["v1"] };

/// The tree of a configuration, or the error. Unknown and duplicate fields are errors.
pub(super) fn decode(bytes: &[u8]) -> Result<Value, String> {
    let converted = yaml::to_json(bytes).map_err(|error| error.to_string())?;
    // Every JSON text is YAML, so this reads both.
    let text = Zeroizing::new(converted.json);
    // For another kind of file, the reference prints the whole file, with the secrets in it; this does not.
    KIND.check(&text)?;
    let decoded = json::decode(&text, SCHEMA.root()).map_err(|error| error.to_string())?;
    let mut problems = converted.problems;
    problems.extend(decoded.problems);
    match problems.is_empty() {
        true => Ok(decoded.value),
        false => {
            let texts: Vec<_> = problems.iter().map(StrictProblem::to_string).collect();
            Err(format!("strict decoding error: {}", texts.join(", ")))
        }
    }
}

/// Overwrites every string of a tree.
pub(super) fn wipe(tree: &mut Value) {
    match tree {
        Value::String(text) => text.zeroize(),
        Value::Array(items) => items.iter_mut().for_each(wipe),
        Value::Object(members) => members.values_mut().for_each(wipe),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The schema of the configuration.
static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    let mut types = Types(SchemaBuilder::new());
    let text = types.0.scalar(Type::String);
    let number = types.0.scalar(Type::Int32);
    let duration = types.0.scalar(Type::Duration);
    let texts = types.list(text);
    let key = types.structure(&[("name", text), ("secret", text)], &[]);
    let keys = types.list(key);
    let with_keys = types.structure(&[("keys", keys)], &[]);
    let identity = types.structure(&[], &[]);
    let kms = types.structure(
        &[("apiVersion", text), ("name", text), ("endpoint", text)],
        &[("cachesize", number), ("timeout", duration)],
    );
    let provider = types.structure(
        &[],
        &[
            ("aesgcm", with_keys),
            ("aescbc", with_keys),
            ("secretbox", with_keys),
            ("identity", identity),
            ("kms", kms),
        ],
    );
    let providers = types.list(provider);
    let rule = types.structure(&[("resources", texts), ("providers", providers)], &[]);
    let rules = types.list(rule);
    let root = types.structure(&[("kind", text), ("apiVersion", text), ("resources", rules)], &[]);
    types.0.finish(root)
});

struct Types(SchemaBuilder);

impl Types {
    fn list(&mut self, item: NodeId) -> NodeId {
        self.0.list(item, ListType::Atomic, &[])
    }

    /// A struct of these fields; those in `pointers` distinguish absent from zero.
    fn structure(
        &mut self,
        values: &[(&'static str, NodeId)],
        pointers: &[(&'static str, NodeId)],
    ) -> NodeId {
        let id = self.0.reserve();
        let field = |pointer: bool| {
            move |&(name, node): &(&'static str, NodeId)| {
                let omit = if pointer { Omit::Empty } else { Omit::Never };
                (FieldSpec { name, pointer, omit, ..FieldSpec::default() }, node)
            }
        };
        let fields = values.iter().map(field(false)).chain(pointers.iter().map(field(true))).collect();
        self.0.set_struct(id, StructSpec { fields, declared: true, ..StructSpec::default() });
        id
    }
}
