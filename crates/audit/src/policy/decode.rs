//! Decodes YAML or JSON to a tree. Unknown fields are tolerated and reported.

use pintle_machinery::{
    Value,
    codec::{ConfigKind, StrictProblem, json, yaml},
    text::go_json_type,
};
use pintle_schema::{FieldSpec, ListType, NodeId, Omit, Schema, SchemaBuilder, StructSpec, Structural, Type};
use std::sync::LazyLock;

const KIND: ConfigKind = ConfigKind { kind: "Policy", group: "audit.k8s.io", versions: &["v1"] };

/// The tree of a policy with warnings for unknown fields, or the error.
pub(super) fn decode(text: &[u8]) -> Result<(Value, Vec<String>), String> {
    // Every JSON text is YAML, so this reads both.
    let converted = yaml::to_json(text).map_err(|error| error.to_string())?;
    KIND.check(&converted.json)?;
    let decoded = json::decode(&converted.json, SCHEMA.root()).map_err(|error| error.to_string())?;
    check_types(&decoded.value, POLICY, "")?;
    let problems = converted.problems.iter().chain(&decoded.problems);
    Ok((decoded.value, problems.map(StrictProblem::to_string).collect()))
}

/// The type of a field.
enum Shape {
    Text,
    Truth,
    /// A list of strings.
    Texts,
    /// A list of objects with these fields.
    Objects(Fields),
    /// Any value; it is not used.
    Anything,
}

type Fields = &'static [(&'static str, Shape)];

const POLICY: Fields = &[
    ("kind", Shape::Text),
    ("apiVersion", Shape::Text),
    ("metadata", Shape::Anything),
    ("rules", Shape::Objects(RULE)),
    ("omitStages", Shape::Texts),
    ("omitManagedFields", Shape::Truth),
];

const RULE: Fields = &[
    ("level", Shape::Text),
    ("users", Shape::Texts),
    ("userGroups", Shape::Texts),
    ("verbs", Shape::Texts),
    ("resources", Shape::Objects(GROUP_RESOURCES)),
    ("namespaces", Shape::Texts),
    ("nonResourceURLs", Shape::Texts),
    ("omitStages", Shape::Texts),
    ("omitManagedFields", Shape::Truth),
];

const GROUP_RESOURCES: Fields =
    &[("group", Shape::Text), ("resources", Shape::Texts), ("resourceNames", Shape::Texts)];

/// Checks the types of fields: decoding by a schema that is not built in keeps values of other types. If such a value
/// were read as absent, a rule could match more requests than intended.
fn check_types(tree: &Value, fields: Fields, path: &str) -> Result<(), String> {
    for (name, shape) in fields {
        let Some(value) = tree.get(name).filter(|value| !value.is_null()) else { continue };
        let path = if path.is_empty() { (*name).to_owned() } else { format!("{path}.{name}") };
        let (is_right, wanted) = match shape {
            Shape::Text => (value.is_string(), "string"),
            Shape::Truth => (value.is_boolean(), "bool"),
            Shape::Texts => (is_list_of(value, Value::is_string), "list of strings"),
            Shape::Objects(_) => (is_list_of(value, Value::is_object), "list of objects"),
            Shape::Anything => (true, ""),
        };
        if !is_right {
            return Err(format!("{path}: cannot read {} as {wanted}", go_json_type(value)));
        }
        if let Shape::Objects(fields) = shape {
            for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                check_types(item, fields, &format!("{path}[{index}]"))?;
            }
        }
    }
    Ok(())
}

fn is_list_of(value: &Value, is_item: impl Fn(&Value) -> bool) -> bool {
    value.as_array().is_some_and(|items| items.iter().all(is_item))
}

/// The schema of a policy, by which unknown fields are reported.
static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    let mut builder = SchemaBuilder::new();
    let root = structure(&mut builder, POLICY);
    builder.finish(root)
});

fn structure(builder: &mut SchemaBuilder, fields: Fields) -> NodeId {
    let id = builder.reserve();
    let mut specs = Vec::with_capacity(fields.len());
    for (name, shape) in fields {
        let node = match shape {
            Shape::Text => builder.scalar(Type::String),
            Shape::Truth => builder.scalar(Type::Bool),
            Shape::Anything => {
                let node = builder.scalar(Type::Any);
                let anything = Structural { preserve_unknown_fields: true, ..Structural::default() };
                builder.set_structural(node, anything);
                node
            }
            Shape::Texts => {
                let item = builder.scalar(Type::String);
                builder.list(item, ListType::Atomic, &[])
            }
            Shape::Objects(fields) => {
                let item = structure(builder, fields);
                builder.list(item, ListType::Atomic, &[])
            }
        };
        let spec = FieldSpec { name, pointer: true, omit: Omit::Empty, ..FieldSpec::default() };
        specs.push((spec, node));
    }
    builder.set_struct(id, StructSpec { fields: specs, declared: true, ..StructSpec::default() });
    id
}
