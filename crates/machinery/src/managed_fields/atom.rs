//! How server-side apply sees a value: what of it is owned piece by piece
//! (<https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy>).

use crate::{Map, Value};
use pintle_schema::{FieldRef, ListType, MapType, SchemaRef, Type};
use serde_json::json;
use std::sync::LazyLock;

/// The form of a value.
#[derive(Clone, Copy)]
pub(super) enum Atom<'a> {
    /// Owned as a whole: scalars, and what is declared atomic.
    Leaf,
    /// Fields of a struct.
    Struct(SchemaRef<'a>),
    /// Entries of a map, all of one type.
    Map(SchemaRef<'a>),
    /// Scalars, each owned for itself.
    Set,
    /// Objects that key fields tell apart.
    List(SchemaRef<'a>),
}

impl<'a> Atom<'a> {
    pub(super) fn of(schema: SchemaRef<'a>) -> Atom<'a> {
        match schema.ty() {
            Type::Struct | Type::Map if schema.map_type() == MapType::Atomic => Atom::Leaf,
            Type::Struct => Atom::Struct(schema),
            Type::Map => Atom::Map(schema.value()),
            Type::List => match schema.list_type() {
                ListType::Atomic => Atom::Leaf,
                ListType::Set => Atom::Set,
                ListType::Map => Atom::List(schema),
            },
            Type::Bool
            | Type::Int32
            | Type::Int64
            | Type::Float64
            | Type::String
            | Type::Bytes
            | Type::Time
            | Type::MicroTime
            | Type::Duration
            | Type::Quantity
            | Type::IntOrString
            | Type::RawExtension
            | Type::FieldsV1
            | Type::Json
            | Type::Any
            | Type::Union(_) => Atom::Leaf,
        }
    }

    /// The schema of a member, and whether it is a declared field.
    pub(super) fn member(self, name: &str) -> Option<(SchemaRef<'a>, bool)> {
        match self {
            Atom::Struct(schema) => schema.field(name).map(|field| (field.ty(), true)),
            Atom::Map(value) => Some((value, false)),
            Atom::Leaf | Atom::Set | Atom::List(_) => None,
        }
    }

    /// The schema of an item; `None` for scalars.
    pub(super) fn item(self) -> Option<SchemaRef<'a>> {
        match self {
            Atom::List(schema) => Some(schema.item()),
            Atom::Leaf | Atom::Struct(_) | Atom::Map(_) | Atom::Set => None,
        }
    }
}

/// The encoded path element of an item of a set or a list with keys.
pub(super) fn item_element(atom: Atom<'_>, item: &Value) -> Result<String, String> {
    let Atom::List(schema) = atom else {
        return match item {
            Value::Null => {
                Err("associative list without keys has an element that's an explicit null".to_owned())
            }
            Value::Object(_) => {
                Err("associative list without keys has an element that's a map type".to_owned())
            }
            Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
            scalar => Ok(format!("v:{scalar}")),
        };
    };
    let Some(item) = item.as_object() else {
        return Err("associative list with keys may not have non-map elements".to_owned());
    };
    let fields = schema.item();
    let mut keys: Vec<&str> = schema.list_map_keys().collect();
    keys.sort_unstable();
    let mut element = String::with_capacity(32);
    element.push_str("k:{");
    let mut found = false;
    for key in keys {
        let field = fields.field(key);
        let value = item.get(key).filter(|value| !value.is_null());
        let value = value
            .or_else(|| field.and_then(|field| field.default()))
            .or_else(|| field.filter(|field| field.is_always_written()).map(zero));
        let Some(value) = value else { continue };
        if found {
            element.push(',');
        }
        found = true;
        element.push('"');
        element.push_str(key);
        element.push_str("\":");
        match value {
            Value::String(text) if !text.contains(|c: char| c == '"' || c == '\\' || c.is_control()) => {
                element.push('"');
                element.push_str(text);
                element.push('"');
            }
            value => element.push_str(&value.to_string()),
        }
    }
    if !found {
        return Err("associative list with keys has an element that omits all key fields".to_owned());
    }
    element.push('}');
    Ok(element)
}

/// What Go's encoder writes for a field that is always written and has its zero value.
pub(super) fn zero(field: FieldRef<'_>) -> &'static Value {
    static ZEROS: LazyLock<[Value; 6]> =
        LazyLock::new(|| [json!({}), json!(""), json!(0), json!(false), json!("0"), Value::Null]);
    let [object, text, number, boolean, quantity, null] = &*ZEROS;
    if field.is_pointer() {
        return null;
    }
    match field.ty().ty() {
        Type::Struct => object,
        Type::String => text,
        Type::Int32 | Type::Int64 | Type::Float64 | Type::IntOrString => number,
        Type::Bool => boolean,
        Type::Quantity => quantity,
        _ => null,
    }
}

/// The members of an object, none for null.
pub(super) fn object(value: Option<&Value>) -> Option<&Map> {
    value.and_then(Value::as_object)
}
