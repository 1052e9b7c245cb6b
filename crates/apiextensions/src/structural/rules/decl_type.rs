//! The types of schemas in expressions, with bounds on the size of values
//! (<https://kubernetes.io/docs/reference/using-api/cel/#type-checking>).
//!
//! Sizes are estimates of values that fit into a request. The cost estimates of expressions follow from them. The
//! figures are part of the API, because they decide which definitions are accepted.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use pintle_cel::types::{Type, TypeProvider};

use crate::structural::arena::Arena;
use crate::structural::node::{Constraint, Flags, JsonType, Node};
use crate::structural::object_meta::is_meta_field;

/// The size of the largest request, in bytes.
const MAX_REQUEST_SIZE: i64 = 3 * 1024 * 1024;
/// The minimum sizes of `""`, `0`, `true` and so on, in bytes.
const MIN_STRING_SIZE: i64 = 2;
const MIN_NUMBER_SIZE: i64 = 1;
const MIN_BOOL_SIZE: i64 = 4;
const MIN_DURATION_SIZE: i64 = 3;
const MAX_DURATION_SIZE: i64 = 32;
const DATE_SIZE: i64 = 12;
const MIN_DATE_TIME_SIZE: i64 = 21;
const MAX_DATE_TIME_SIZE: i64 = 32;

/// The type name of a rule's value. Expressions cannot rely on it.
const SELF_TYPE: &str = "selfType1";

/// A type of values, with their sizes.
#[derive(Debug)]
pub(crate) struct DeclType {
    shape: Shape,
    /// The maximum number of characters, bytes, items or members.
    max_elements: i64,
    /// The minimum size of a value in JSON, in bytes.
    min_size: i64,
}

#[derive(Debug)]
enum Shape {
    Bool,
    Bytes,
    Double,
    Duration,
    Dyn,
    Int,
    String,
    Timestamp,
    List(Arc<DeclType>),
    Map(Arc<DeclType>),
    /// Fields, by their escaped names.
    Object(BTreeMap<Box<str>, Arc<DeclType>>),
}

impl DeclType {
    /// The type of a node's values; `None` where expressions have no access. `resource` marks objects with metadata.
    pub(crate) fn of(schema: &Arena, node: &Node, resource: bool) -> Option<DeclType> {
        if node.flags.has(Flags::INT_OR_STRING) {
            let max = max_length(schema, node).map_or(MAX_REQUEST_SIZE - 2, |max| max.saturating_mul(4));
            return Some(DeclType { shape: Shape::Dyn, max_elements: max, min_size: 1 });
        }
        match node.ty? {
            JsonType::Array => {
                let item = Arc::new(DeclType::of_value(schema, schema.items(node)?)?);
                let max = schema.constraints(node).iter().find_map(|constraint| match constraint {
                    Constraint::MaxItems(max) => Some((*max).max(0)),
                    _ => None,
                });
                let max = max.unwrap_or((MAX_REQUEST_SIZE - 2) / (item.min_size + 1));
                Some(DeclType { shape: Shape::List(item), max_elements: max, min_size: 2 })
            }
            JsonType::Object => match schema.additional(node) {
                Some(value) => {
                    let value = Arc::new(DeclType::of_value(schema, value)?);
                    let max = schema.constraints(node).iter().find_map(|constraint| match constraint {
                        Constraint::MaxProperties(max) => Some((*max).max(0)),
                        _ => None,
                    });
                    // A key's quotes, a colon, a comma and two bytes of the key.
                    let max = max.unwrap_or((MAX_REQUEST_SIZE - 2) / (value.min_size + 6));
                    Some(DeclType { shape: Shape::Map(value), max_elements: max, min_size: 2 })
                }
                None => Some(DeclType::object(schema, node, resource)),
            },
            JsonType::String => Some(DeclType::string(schema, node)),
            JsonType::Boolean => Some(DeclType::scalar(Shape::Bool, MIN_BOOL_SIZE)),
            JsonType::Number => Some(DeclType::scalar(Shape::Double, MIN_NUMBER_SIZE)),
            JsonType::Integer => Some(DeclType::scalar(Shape::Int, MIN_NUMBER_SIZE)),
            JsonType::Unknown(_) => None,
        }
    }

    fn of_value(schema: &Arena, node: &Node) -> Option<DeclType> {
        DeclType::of(schema, node, node.flags.has(Flags::EMBEDDED_RESOURCE))
    }

    fn scalar(shape: Shape, min_size: i64) -> DeclType {
        DeclType { shape, max_elements: 0, min_size }
    }

    fn string(schema: &Arena, node: &Node) -> DeclType {
        let max = max_length(schema, node);
        let format = schema.constraints(node).iter().find_map(|constraint| match constraint {
            Constraint::Format(name) => Some(schema.str(*name)),
            _ => None,
        });
        let (shape, max_elements, min_size) = match format {
            Some("byte") => (Shape::Bytes, max.unwrap_or(MAX_REQUEST_SIZE - 2), MIN_STRING_SIZE),
            Some("duration") => (Shape::Duration, MAX_DURATION_SIZE, MIN_DURATION_SIZE),
            Some("date") => (Shape::Timestamp, DATE_SIZE, DATE_SIZE),
            Some("date-time") => (Shape::Timestamp, MAX_DATE_TIME_SIZE, MIN_DATE_TIME_SIZE),
            _ => {
                let max = match (max, schema.enum_values(node)) {
                    // A character is up to four bytes.
                    (Some(max), _) => max.saturating_mul(4),
                    (None, Some(values)) => {
                        values.iter().filter_map(|value| value.as_str()).map(str::len).max().unwrap_or(0)
                            as i64
                    }
                    (None, None) => MAX_REQUEST_SIZE - 2,
                };
                (Shape::String, max, MIN_STRING_SIZE)
            }
        };
        DeclType { shape, max_elements, min_size }
    }

    /// The type of an object. The minimum size covers required fields without default.
    fn object(schema: &Arena, node: &Node, resource: bool) -> DeclType {
        let required: HashSet<&str> =
            schema.required(node).into_iter().flatten().map(|&name| schema.str(name)).collect();
        let is_required = |name: &str| required.contains(name);
        let replaces_meta = resource && !declares_meta(schema, node);
        let mut fields = BTreeMap::new();
        let mut min_size = 2;
        let mut add = |name: &str, field: DeclType, defaulted: bool| {
            if is_required(name) && !defaulted {
                min_size += name.len() as i64 + field.min_size + 4;
            }
            if let Some(escaped) = pintle_cel::escape(name) {
                fields.insert(escaped.into_owned().into_boxed_str(), Arc::new(field));
            }
        };
        for (name, property) in schema.properties(node) {
            if replaces_meta && is_meta_field(name) {
                continue;
            }
            if let Some(field) = DeclType::of_value(schema, property) {
                add(name, field, schema.default(property).is_some());
            }
        }
        if replaces_meta {
            for name in ["apiVersion", "kind"] {
                add(name, DeclType::plain_string(), false);
            }
            let names =
                ["generateName", "name"].map(|name| (name.into(), Arc::new(DeclType::plain_string())));
            add("metadata", DeclType::scalar(Shape::Object(BTreeMap::from(names)), 2), false);
        }
        DeclType { shape: Shape::Object(fields), max_elements: 0, min_size }
    }

    fn plain_string() -> DeclType {
        DeclType { shape: Shape::String, max_elements: MAX_REQUEST_SIZE - 2, min_size: MIN_STRING_SIZE }
    }

    /// The type of a field by its escaped name.
    pub(crate) fn field(&self, name: &str) -> Option<&Arc<DeclType>> {
        match &self.shape {
            Shape::Object(fields) => fields.get(name),
            _ => None,
        }
    }

    /// The type of a list's items or a map's values.
    pub(crate) fn element(&self) -> Option<&Arc<DeclType>> {
        match &self.shape {
            Shape::List(element) | Shape::Map(element) => Some(element),
            _ => None,
        }
    }

    /// The maximum number of values of this type in a request.
    pub(crate) fn max_cardinality(&self) -> u64 {
        (MAX_REQUEST_SIZE / (self.min_size + 1)) as u64
    }

    /// The type of `self` and `oldSelf`.
    pub(crate) fn self_type(&self) -> Type {
        self.cel_type(SELF_TYPE)
    }

    fn cel_type(&self, name: &str) -> Type {
        match &self.shape {
            Shape::Bool => Type::Bool,
            Shape::Bytes => Type::Bytes,
            Shape::Double => Type::Double,
            Shape::Duration => Type::Duration,
            Shape::Dyn => Type::Dyn,
            Shape::Int => Type::Int,
            Shape::String => Type::String,
            Shape::Timestamp => Type::Timestamp,
            Shape::List(item) => Type::list(item.cel_type(&format!("{name}.@idx"))),
            Shape::Map(value) => Type::map(Type::String, value.cel_type(&format!("{name}.@elem"))),
            Shape::Object(_) => Type::object(name),
        }
    }

    /// The maximum number of characters, items or members at a path of an expression, which begins with the variable.
    pub(crate) fn max_elements<'p>(&self, mut path: impl Iterator<Item = &'p str>) -> Option<u64> {
        // A value without a path, such as the result of a call, has no declared size.
        path.next()?;
        let mut found = self;
        for step in path {
            found = match step {
                "@items" | "@values" => found.element()?,
                "@keys" => match found.shape {
                    // Keys are strings without declared bounds.
                    Shape::Map(_) => return Some(0),
                    _ => return None,
                },
                name => found.field(name)?,
            };
        }
        Some(found.max_elements as u64)
    }
}

fn max_length(schema: &Arena, node: &Node) -> Option<i64> {
    schema.constraints(node).iter().find_map(|constraint| match constraint {
        Constraint::MaxLength(max) => Some((*max).max(0)),
        _ => None,
    })
}

/// Whether a resource's schema declares the type and metadata fields itself; its declarations then take precedence.
pub(super) fn declares_meta(schema: &Arena, node: &Node) -> bool {
    let is = |node: Option<&Node>, ty| node.is_some_and(|node| node.ty == Some(ty));
    let metadata = schema.property(node, "metadata");
    let of_metadata = |name| metadata.and_then(|metadata| schema.property(metadata, name));
    is(schema.property(node, "kind"), JsonType::String)
        && is(schema.property(node, "apiVersion"), JsonType::String)
        && is(metadata, JsonType::Object)
        && is(of_metadata("name"), JsonType::String)
        && is(of_metadata("generateName"), JsonType::String)
}

/// Looks up the fields of types by the positions that types are named after.
#[derive(Debug)]
pub(super) struct Fields(pub(super) Arc<DeclType>);

impl Fields {
    fn find(&self, type_name: &str) -> Option<&DeclType> {
        let mut found: &DeclType = &self.0;
        for step in type_name.strip_prefix(SELF_TYPE)?.split('.').skip(1) {
            found = match step {
                "@idx" | "@elem" => found.element()?,
                name => found.field(name)?,
            };
        }
        matches!(found.shape, Shape::Object(_)).then_some(found)
    }
}

impl TypeProvider for Fields {
    fn has_type(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    fn field(&self, type_name: &str, field: &str) -> Option<Type> {
        let object = self.find(type_name)?;
        if let Some(found) = object.field(field) {
            return Some(found.cel_type(&format!("{type_name}.{field}")));
        }
        // After a dot, reserved words of the language may be unescaped.
        let escaped = pintle_cel::escape(field).filter(|escaped| escaped == &format!("__{field}__"))?;
        let found = object.field(&escaped)?;
        Some(found.cel_type(&format!("{type_name}.{escaped}")))
    }
}
