//! Builds bodies with one list or map full of small entries.

use pintle_schema::{FieldRef, SchemaRef, Type};
use serde_json::{Map, Value, json};

/// A list or map somewhere in a kind.
#[derive(Debug, Clone)]
pub struct Spot {
    /// The path to it.
    steps: Vec<Step>,
    /// Its schema.
    schema: SchemaRef<'static>,
    /// The type that has it and its field name there, the same in every kind with this type.
    owner: String,
    /// The fields that identify items.
    keys: Vec<String>,
}

#[derive(Debug, Clone)]
enum Step {
    Field(&'static str, SchemaRef<'static>),
    /// The first item of a list.
    Item(SchemaRef<'static>),
    /// The value of a key of a map.
    Key(SchemaRef<'static>),
}

/// The entries of a filled list or map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// Entries without fields, the highest number for a size.
    Empty,
    /// Equal entries with their required fields. In a map: entries without fields, with different keys.
    Equal,
    /// Distinct entries with their required fields.
    Distinct,
    /// Entries with all their fields, and with lists of one entry below them.
    Full,
}

impl Fill {
    /// All variants.
    pub const ALL: [Fill; 4] = [Fill::Empty, Fill::Equal, Fill::Distinct, Fill::Full];
}

/// Every list and map of a kind, and every field that accepts any JSON.
pub fn spots(kind: SchemaRef<'static>) -> Vec<Spot> {
    let mut spots = Vec::new();
    walk(kind, &mut Vec::new(), &mut Vec::new(), "", &[], &mut spots);
    spots
}

fn walk(
    schema: SchemaRef<'static>,
    steps: &mut Vec<Step>,
    above: &mut Vec<SchemaRef<'static>>,
    owner: &str,
    keys: &[String],
    spots: &mut Vec<Spot>,
) {
    let mut found = || {
        spots.push(Spot { steps: steps.clone(), schema, owner: owner.to_owned(), keys: keys.to_vec() });
    };
    match schema.ty() {
        Type::List => {
            found();
            steps.push(Step::Item(schema.item()));
            walk(schema.item(), steps, above, &format!("{owner}[]"), &[], spots);
            steps.pop();
        }
        Type::Map => {
            found();
            steps.push(Step::Key(schema.value()));
            walk(schema.value(), steps, above, &format!("{owner}{{}}"), &[], spots);
            steps.pop();
        }
        Type::RawExtension | Type::FieldsV1 | Type::Json | Type::Any => found(),
        // Recursive types are entered once.
        Type::Struct if !above.contains(&schema) => {
            above.push(schema);
            for field in schema.fields() {
                steps.push(Step::Field(field.name(), field.ty()));
                let owner = format!("{}.{}", schema.go_type(), field.name());
                walk(field.ty(), steps, above, &owner, &keys_of(field), spots);
                steps.pop();
            }
            above.pop();
        }
        Type::Union(_) => {
            if let Some((_, one, other)) = schema.union() {
                for shape in [one, other] {
                    walk(shape, steps, above, owner, keys, spots);
                }
            }
        }
        _ => {}
    }
}

fn keys_of(field: FieldRef<'static>) -> Vec<String> {
    let mut keys: Vec<String> = field.ty().list_map_keys().map(str::to_owned).collect();
    keys.extend(field.patch_merge_key().map(str::to_owned));
    keys
}

impl Spot {
    /// The type that has it, and its name there.
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// Whether it is in the status.
    pub fn in_status(&self) -> bool {
        matches!(self.steps.first(), Some(Step::Field("status", _)))
    }

    /// Its path as a JSON pointer.
    pub fn pointer(&self) -> String {
        let step = |step: &Step| match step {
            Step::Field(name, _) => format!("/{name}"),
            Step::Item(_) => "/0".to_owned(),
            Step::Key(_) => "/k".to_owned(),
        };
        self.steps.iter().map(step).collect()
    }
}

/// A value for a spot, of approximately this number of bytes of JSON.
pub fn value_of_size(spot: &Spot, fill: Fill, bytes: usize) -> Value {
    value_from(spot, fill, bytes, 0)
}

/// A value for a spot, with entries that are numbered from `first`.
pub fn value_from(spot: &Spot, fill: Fill, bytes: usize, first: usize) -> Value {
    let schema = spot.schema;
    let mut left = bytes as isize;
    let numbers = first..;
    if schema.ty() == Type::List {
        let mut items = Vec::new();
        for number in numbers {
            let item = entry(schema.item(), number, fill, &spot.keys, 0);
            left -= item.to_string().len() as isize + 1;
            if left < 0 {
                break;
            }
            items.push(item);
        }
        return Value::Array(items);
    }
    let mut members = Map::new();
    for number in numbers {
        // Sets of field paths are written with a prefix.
        let key = if schema.ty() == Type::FieldsV1 { format!("f:a{number}") } else { format!("a{number}") };
        let value = match schema.ty() {
            Type::Map => entry(schema.value(), number, fill, &[], 0),
            _ => json!({}),
        };
        left -= (key.len() + value.to_string().len() + 4) as isize;
        if left < 0 {
            break;
        }
        members.insert(key, value);
    }
    Value::Object(members)
}

/// An object with a value at a spot; missing parents are created.
pub fn body_with(base: &Value, spot: &Spot, value: Value) -> Value {
    let mut body = base.clone();
    let mut at = &mut body;
    for step in &spot.steps {
        at = match step {
            Step::Field(name, schema) => {
                let object = as_object(at);
                object.entry(*name).or_insert_with(|| blank(*schema))
            }
            Step::Item(schema) => {
                if at.as_array().is_none_or(Vec::is_empty) {
                    *at = Value::Array(vec![entry(*schema, 0, Fill::Distinct, &[], 0)]);
                }
                match at.as_array_mut().and_then(|items| items.first_mut()) {
                    Some(item) => item,
                    None => return body,
                }
            }
            Step::Key(schema) => {
                let value = entry(*schema, 0, Fill::Distinct, &[], 0);
                as_object(at).entry("k").or_insert(value)
            }
        };
    }
    *at = value;
    body
}

fn as_object(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = json!({});
    }
    value.as_object_mut().expect("it was just made one")
}

/// The initial value of a field to fill: a struct has its required fields.
fn blank(schema: SchemaRef<'static>) -> Value {
    entry(schema, 0, Fill::Distinct, &[], 0)
}

/// Depth below an entry to which fields are filled.
const DEPTH: usize = 3;

pub(crate) fn entry(
    schema: SchemaRef<'static>,
    number: usize,
    fill: Fill,
    keys: &[String],
    depth: usize,
) -> Value {
    let number = if matches!(fill, Fill::Distinct | Fill::Full) { number } else { 0 };
    let is_empty = fill == Fill::Empty;
    match schema.ty() {
        Type::Bool => json!(true),
        Type::Int32 | Type::Int64 => json!(number % 60_000 + 1),
        Type::Float64 => json!(1.5),
        Type::String => match schema.enum_values().next() {
            Some(value) => json!(value),
            None if is_empty => json!(""),
            None => json!(format!("a{number}")),
        },
        Type::Bytes => json!(if is_empty { "" } else { "YQ==" }),
        Type::Time => json!("2026-01-01T00:00:00Z"),
        Type::MicroTime => json!("2026-01-01T00:00:00.000000Z"),
        Type::Duration => json!("1s"),
        Type::Quantity => json!("1"),
        Type::IntOrString => json!(number % 60_000 + 1),
        Type::RawExtension | Type::Json | Type::Any => json!({"a": number}),
        Type::FieldsV1 => json!({format!("f:a{number}"): {}}),
        Type::List if is_empty || depth >= DEPTH => json!([]),
        Type::List => json!([entry(schema.item(), number, fill, &[], depth + 1)]),
        Type::Map if is_empty || depth >= DEPTH => json!({}),
        Type::Map => json!({format!("a{number}"): entry(schema.value(), number, fill, &[], depth + 1)}),
        Type::Union(_) => json!({}),
        Type::Struct if is_empty || depth >= DEPTH => json!({}),
        Type::Struct => {
            let is_scalar = |field: &FieldRef<'static>| {
                !matches!(field.ty().ty(), Type::List | Type::Map | Type::Struct | Type::Union(_))
            };
            let wanted = |field: &FieldRef<'static>| {
                fill == Fill::Full || field.is_required() || keys.iter().any(|key| key == field.name())
            };
            let mut fields: Vec<FieldRef<'static>> = schema.fields().filter(wanted).collect();
            if fields.is_empty() && depth == 0 {
                fields.extend(schema.fields().find(is_scalar));
            }
            let value =
                |field: FieldRef<'static>| entry(field.ty(), number, fill, &keys_of(field), depth + 1);
            Value::Object(fields.into_iter().map(|field| (field.name().to_owned(), value(field))).collect())
        }
    }
}
