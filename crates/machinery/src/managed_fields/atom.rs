//! Determines which parts of a value are owned separately in server-side apply
//! (<https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy>).
//!
//! A type allows a value to be a scalar, a list or a map; most types allow one of them. Where the type does not
//! restrict the value (unknown fields that are preserved, the JSON inside of definitions) the value itself decides.

use super::path_element::{write_text, write_value};
use crate::{Map, Value};
use pintle_schema::{FieldRef, ListType, MapType, Omit, SchemaRef, Type};
use pintle_tree::json;
use std::sync::LazyLock;

/// The form of the compared trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trees {
    /// The canonical form: without the fields that Go's encoder omits, and without those that it always writes.
    Canonical,
    /// The JSON form, or a client's configuration: every owned field is present.
    Written,
}

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape<'a> {
    /// The type of a schema. Below a part of a custom resource that preserves unknown fields, all structs preserve
    /// them.
    Typed { schema: SchemaRef<'a>, preserves: bool },
    /// A value of any type; maps are merged key by key.
    Deduced,
    /// A value of any type, replaced as a whole.
    Opaque,
}

/// The allowed types of a scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scalar {
    Numeric,
    String,
    Boolean,
    Any,
}

/// The form of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Atom<'a> {
    Scalar(Scalar),
    /// A struct or a map.
    Map(Members<'a>),
    List(Items<'a>),
}

/// The members of a struct or a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Members<'a> {
    /// Whether it is owned as a whole.
    pub(super) atomic: bool,
    /// The struct, if it is one.
    schema: Option<SchemaRef<'a>>,
    /// The type of members that are not declared fields, if such members are allowed.
    element: Option<Shape<'a>>,
    preserves: bool,
}

/// The items of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Items<'a> {
    /// The list is owned as a whole.
    Atomic(Shape<'a>),
    /// Scalars, each with its own owners.
    Set(Shape<'a>),
    /// Objects identified by key fields; the list and its items.
    Keyed(SchemaRef<'a>, Shape<'a>),
}

impl<'a> Shape<'a> {
    /// The shape of a whole object.
    pub(super) fn of(schema: SchemaRef<'a>) -> Shape<'a> {
        Shape::below(schema, false)
    }

    fn below(schema: SchemaRef<'a>, preserves: bool) -> Shape<'a> {
        let own = schema.structural().is_some_and(|structural| structural.preserve_unknown_fields);
        // The metadata of an embedded resource is of a type of its own, which preserves nothing.
        Shape::Typed { schema, preserves: own || preserves && schema.is_structural() }
    }

    /// The form of a value; an absent value or null fits any form.
    pub(super) fn atom(self, value: Option<&Value>) -> Atom<'a> {
        let Shape::Typed { schema, preserves } = self else { return self.chosen(value) };
        let structural = schema.structural();
        if structural.is_some_and(|structural| structural.untyped) {
            return Shape::Deduced.chosen(value);
        }
        match schema.ty() {
            Type::Struct => Atom::Map(Members {
                atomic: schema.map_type() == MapType::Atomic,
                schema: Some(schema),
                element: (preserves || schema.fields().len() == 0).then_some(Shape::Deduced),
                preserves,
            }),
            Type::Map => Atom::Map(Members {
                atomic: schema.map_type() == MapType::Atomic,
                schema: None,
                element: Some(Shape::below(schema.value(), preserves)),
                preserves,
            }),
            Type::FieldsV1 => Shape::Deduced.chosen(None),
            Type::List => {
                let item = Shape::below(schema.item(), preserves);
                Atom::List(match schema.list_type() {
                    ListType::Atomic => Items::Atomic(item),
                    ListType::Set => Items::Set(item),
                    ListType::Map => Items::Keyed(schema, item),
                })
            }
            Type::Bool => Atom::Scalar(Scalar::Boolean),
            Type::Int32 | Type::Int64 | Type::Float64 => Atom::Scalar(Scalar::Numeric),
            Type::String if schema.structural().is_some_and(|structural| structural.formatted) => {
                Atom::Scalar(Scalar::Any)
            }
            Type::String | Type::Bytes | Type::Duration => Atom::Scalar(Scalar::String),
            // In the OpenAPI of the reference it has no type.
            Type::IntOrString => Shape::Deduced.chosen(value),
            Type::Time | Type::MicroTime | Type::Quantity => Atom::Scalar(Scalar::Any),
            Type::RawExtension => Shape::Opaque.chosen(value),
            Type::Json | Type::Any | Type::Union(_) => Shape::Deduced.chosen(value),
        }
    }

    fn chosen(self, value: Option<&Value>) -> Atom<'a> {
        match value {
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_)) => Atom::Scalar(Scalar::Any),
            Some(Value::Array(_)) => Atom::List(Items::Atomic(Shape::Opaque)),
            None | Some(Value::Null | Value::Object(_)) => Atom::Map(Members {
                atomic: self == Shape::Opaque,
                schema: None,
                element: Some(self),
                preserves: false,
            }),
        }
    }

    /// The forms of two values: one form, unless the type allows several and the values differ in form.
    pub(super) fn atoms(self, old: Option<&Value>, new: Option<&Value>) -> (Atom<'a>, Option<Atom<'a>>) {
        match (old, new) {
            (_, None) => (self.atom(old), None),
            (None, _) => (self.atom(new), None),
            (Some(_), Some(_)) => {
                let (first, second) = (self.atom(old), self.atom(new));
                (first, (first != second).then_some(second))
            }
        }
    }
}

impl Atom<'_> {
    /// Whether the parts of two values of this form have owners, and not the values as a whole.
    pub(super) fn has_parts(self, old: Option<&Value>, new: Option<&Value>, trees: Trees) -> bool {
        match self {
            Atom::Map(members) => {
                !(members.atomic || members.is_empty(old, trees) && members.is_empty(new, trees))
            }
            Atom::List(kind) => !(kind.is_atomic() || items(old).is_empty() && items(new).is_empty()),
            Atom::Scalar(_) => false,
        }
    }
}

impl<'a> Members<'a> {
    /// Whether an object is empty even with the members that Go always writes.
    fn is_empty(self, side: Option<&Value>, trees: Trees) -> bool {
        object(side).is_none_or(|side| {
            side.is_empty()
                && (trees == Trees::Written
                    || self.declared().is_none_or(|schema| schema.always_written().len() == 0))
        })
    }

    /// The type of a member, and whether it is a declared field; `None` when the name is not allowed.
    pub(super) fn member(self, name: &str) -> Option<(Shape<'a>, bool)> {
        match self.schema.and_then(|schema| schema.field(name)) {
            Some(field) => Some((Shape::below(field.ty(), self.preserves), true)),
            None => self.element.map(|element| (element, false)),
        }
    }

    /// The struct, if it is declared in Go, so that Go's encoder writes some absent fields.
    pub(super) fn declared(self) -> Option<SchemaRef<'a>> {
        self.schema.filter(|schema| schema.is_declared())
    }
}

impl<'a> Items<'a> {
    pub(super) fn item(self) -> Shape<'a> {
        match self {
            Items::Atomic(item) | Items::Set(item) | Items::Keyed(_, item) => item,
        }
    }

    pub(super) fn is_atomic(self) -> bool {
        matches!(self, Items::Atomic(_))
    }

    /// The encoded path element of an item of a set or a list with keys.
    ///
    /// # Errors
    /// When the item lacks the values that identify it.
    pub(super) fn element(self, item: &Value, trees: Trees) -> Result<String, String> {
        match self {
            Items::Atomic(_) => Err("invalid indexing of non-associative list".to_owned()),
            Items::Set(_) => set_element(item),
            Items::Keyed(schema, _) => keyed_element(schema, item, trees),
        }
    }
}

fn set_element(item: &Value) -> Result<String, String> {
    match item {
        Value::Null => Err("associative list without keys has an element that's an explicit null".to_owned()),
        Value::Object(_) => Err("associative list without keys has an element that's a map type".to_owned()),
        Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
        scalar => {
            let mut element = b"v:".to_vec();
            write_value(&mut element, scalar);
            Ok(text(element))
        }
    }
}

fn keyed_element(schema: SchemaRef<'_>, item: &Value, trees: Trees) -> Result<String, String> {
    let Some(item) = item.as_object() else {
        let what = if item.is_null() { "a null element" } else { "non-map elements" };
        return Err(format!("associative list with keys may not have {what}"));
    };
    let fields = schema.item();
    let mut keys: Vec<&str> = schema.list_map_keys().collect();
    keys.sort_unstable();
    let mut element = Vec::with_capacity(48);
    element.extend_from_slice(b"k:{");
    let mut found = false;
    for key in keys {
        let field = fields.field(key);
        let is_omitted = |value: &Value| {
            value.is_null() || value == "" && field.is_some_and(|field| field.omit() != Omit::Never)
        };
        let given = item.get(key).filter(|value| trees == Trees::Written || !is_omitted(value));
        // The published schema declares the zero value as default of a field that is always written.
        let value = given
            .or_else(|| field.and_then(|field| field.default()))
            .or_else(|| field.filter(|field| fields.is_declared() && field.is_always_written()).map(zero));
        let Some(value) = value else { continue };
        if found {
            element.push(b',');
        }
        found = true;
        write_text(&mut element, key);
        element.push(b':');
        write_value(&mut element, value);
    }
    if !found {
        let keys: Vec<String> = schema.list_map_keys().map(pintle_go_forms::quote).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for \
             any key fields)",
            keys.join(" ")
        ));
    }
    element.push(b'}');
    Ok(text(element))
}

fn text(element: Vec<u8>) -> String {
    String::from_utf8(element).unwrap_or_default()
}

/// The zero value that Go's encoder writes for an absent field that is always written.
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

/// The items of a list, none for null.
pub(super) fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Whether two values are the same; `1` and `1.0` are.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            a == b || (a.is_f64() != b.is_f64() && a.as_f64() == b.as_f64())
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|((name, a), (other, b))| name == other && same(a, b))
        }
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{json, managed_fields::validate::validate};
    use pintle_schema::{FieldSpec, Schema, SchemaBuilder, StructSpec, Structural};

    #[test]
    fn the_metadata_of_an_embedded_resource_has_no_unknown_fields() {
        let meta = Schema::builtin().by_type_name("k8s.io/apimachinery/pkg/apis/meta/v1.ObjectMeta").unwrap();
        let mut builder = SchemaBuilder::new();
        let meta = builder.builtin(meta);
        let root = builder.reserve();
        let fields = vec![(FieldSpec { name: "metadata", ..FieldSpec::default() }, meta)];
        builder.set_struct(root, StructSpec { fields, ..StructSpec::default() });
        builder.set_structural(root, Structural { preserve_unknown_fields: true, ..Structural::default() });
        let schema = builder.finish(root);
        let faults = |value| validate(&value, Shape::of(schema.root()));
        assert_eq!(faults(json!({"other": {"x": 1}, "metadata": {"name": "a"}})), []);
        let fault = (".metadata.unknown".to_owned(), "field not declared in schema".to_owned());
        assert_eq!(faults(json!({"metadata": {"name": "a", "unknown": 1}})), [fault]);
    }
}
