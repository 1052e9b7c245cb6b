//! The spec of a definition in the form of its validation rules.
//!
//! The rules were written for the reference's internal version, which holds values common to all versions once, for the
//! whole definition. Error paths reflect that (`spec.validation.openAPIV3Schema` instead of
//! `spec.versions[0].schema.openAPIV3Schema`). Clients match these paths.

use super::json_schema_props::JsonSchemaProps;
use pintle_machinery::{Value, ValueExt};

/// The spec, with the common values separated from the versions.
#[derive(Debug)]
pub(super) struct Spec<'a> {
    pub(super) tree: &'a Value,
    pub(super) common: Parts<'a>,
    pub(super) versions: Vec<Version<'a>>,
}

/// One version.
#[derive(Debug)]
pub(super) struct Version<'a> {
    pub(super) tree: &'a Value,
    pub(super) name: &'a str,
    pub(super) own: Parts<'a>,
}

/// The values of a version, or those common to all versions.
#[derive(Debug, Default)]
pub(super) struct Parts<'a> {
    pub(super) validation: Option<Validation<'a>>,
    pub(super) subresources: Option<&'a Value>,
    pub(super) columns: &'a [Value],
    pub(super) selectable_fields: &'a [Value],
}

/// The `schema` member of a version, which may be empty.
#[derive(Debug)]
pub(super) struct Validation<'a> {
    pub(super) schema: Option<JsonSchemaProps<'a>>,
}

impl<'a> Spec<'a> {
    /// Parses the spec of a definition.
    pub(super) fn of(definition: &'a Value) -> Spec<'a> {
        static NOTHING: Value = Value::Null;
        let tree = definition.at("spec").unwrap_or(&NOTHING);
        let versions = tree.items_at("versions");
        let first = versions.first();
        let is_common = |name: &str| {
            let value = first.and_then(|version| version.field(name));
            first.is_some() && versions.iter().all(|version| same(version.field(name), value))
        };
        let names = ["schema", "subresources", "additionalPrinterColumns", "selectableFields"];
        let common = names.map(is_common);
        let parts = |version: Option<&'a Value>, wanted: [bool; 4]| {
            let [validation, subresources, columns, fields] = std::array::from_fn(|at| {
                let wanted = wanted.get(at).is_some_and(|wanted| *wanted);
                names.get(at).filter(|_| wanted).and_then(|name| version?.field(name))
            });
            Parts {
                validation: validation.map(|validation| Validation {
                    schema: validation.field("openAPIV3Schema").map(JsonSchemaProps::read),
                }),
                subresources,
                columns: columns.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default(),
                selectable_fields: fields.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default(),
            }
        };
        Spec {
            tree,
            common: parts(first, common),
            versions: versions
                .iter()
                .map(|version| Version {
                    tree: version,
                    name: version.str_at("name"),
                    own: parts(Some(version), common.map(|common| !common)),
                })
                .collect(),
        }
    }

    /// The schemas of all versions, and the common one.
    pub(super) fn schemas(&self) -> impl Iterator<Item = &JsonSchemaProps<'a>> {
        let parts = std::iter::once(&self.common).chain(self.versions.iter().map(|version| &version.own));
        parts.filter_map(Parts::schema)
    }

    /// Whether one of the schemas or their descendants meets a condition.
    pub(super) fn any_schema(&self, mut condition: impl FnMut(&JsonSchemaProps<'a>) -> bool) -> bool {
        self.schemas().any(|schema| schema.has(&mut condition))
    }

    /// Whether unknown fields of all objects are preserved, which only older servers accepted.
    pub(super) fn preserves_unknown_fields(&self) -> bool {
        self.tree.bool_at("preserveUnknownFields")
    }
}

impl<'a> Parts<'a> {
    /// The schema.
    pub(super) fn schema(&self) -> Option<&JsonSchemaProps<'a>> {
        self.validation.as_ref()?.schema.as_ref()
    }

    /// Whether the status subresource is enabled.
    pub(super) fn has_status(&self) -> bool {
        self.subresources.is_some_and(|subresources| subresources.field("status").is_some())
    }
}

/// Whether two values are equal, where `null` and absent are the same. An empty object is a value: it enables a part.
/// So is an empty list where a schema has any JSON: a default may be one.
pub(super) fn same(one: Option<&Value>, other: Option<&Value>) -> bool {
    same_at(Place::Fields, one, other)
}

/// The meaning of an object's members.
#[derive(Clone, Copy)]
enum Place {
    /// They are fields, some of which have any JSON as their value.
    Fields,
    /// They have names of their own, and values with fields.
    Names,
}

fn same_at(place: Place, one: Option<&Value>, other: Option<&Value>) -> bool {
    let (Some(one), Some(other)) = (something(one), something(other)) else {
        return something(one).is_none() && something(other).is_none();
    };
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let same = |name: &str| {
                let (one, other) = (one.get(name), other.get(name));
                match (place, name) {
                    (Place::Fields, "default" | "example") => present(one) == present(other),
                    (Place::Fields, "enum") => something(one) == something(other),
                    (Place::Fields, "properties" | "patternProperties" | "definitions") => {
                        same_at(Place::Names, entries(one), entries(other))
                    }
                    (Place::Fields, _) => same_at(Place::Fields, one, other),
                    (Place::Names, _) => {
                        one.is_some() == other.is_some() && same_at(Place::Fields, one, other)
                    }
                }
            };
            one.keys().all(|name| same(name)) && other.keys().all(|name| one.contains_key(name) || same(name))
        }
        (Value::Array(one), Value::Array(other)) => {
            let mut items = one.iter().zip(other);
            one.len() == other.len()
                && items.all(|(one, other)| same_at(Place::Fields, Some(one), Some(other)))
        }
        (one, other) => one == other,
    }
}

fn present(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| !value.is_null())
}

/// A map of names; an empty one is none.
fn entries(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| value.as_object().is_none_or(|entries| !entries.is_empty()))
}

fn something(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn values_that_all_versions_share_are_common() {
        let definition = json!({"spec": {"versions": [
            {"name": "v1", "schema": {"openAPIV3Schema": {"type": "object"}}, "subresources": {}},
            {"name": "v2", "schema": {"openAPIV3Schema": {"type": "object"}}},
        ]}});
        let spec = Spec::of(&definition);
        assert!(spec.common.schema().is_some() && spec.common.subresources.is_none());
        let own = spec
            .versions
            .iter()
            .map(|version| (version.own.schema().is_some(), version.own.subresources.is_some()));
        assert_eq!(own.collect::<Vec<_>>(), [(false, true), (false, false)]);
    }

    #[test]
    fn empty_objects_differ_from_absent_ones() {
        let check = |one: Value, other: Value, expected: bool| {
            assert_eq!(same(Some(&one), Some(&other)), expected, "{one} {other}");
            assert_eq!(same(Some(&other), Some(&one)), expected, "{other} {one}");
        };
        check(json!({"a": {}}), json!({}), false);
        check(json!({"a": null, "b": []}), json!({"b": null}), true);
        check(json!({"a": 1}), json!({"a": 1.0}), false);
        check(json!({"a": [{"b": null}]}), json!({"a": [{}]}), true);
    }

    #[test]
    fn empty_defaults_differ_from_absent_ones() {
        let check = |one: Value, other: Value, expected: bool| {
            assert_eq!(same(Some(&one), Some(&other)), expected, "{one} {other}");
            assert_eq!(same(Some(&other), Some(&one)), expected, "{other} {one}");
        };
        check(json!({"default": []}), json!({}), false);
        check(json!({"default": null}), json!({}), true);
        check(json!({"default": {"a": []}}), json!({"default": {}}), false);
        check(json!({"example": [null]}), json!({"example": [[]]}), false);
        check(json!({"enum": [[]]}), json!({"enum": [null]}), false);
        check(json!({"enum": []}), json!({}), true);
        check(json!({"properties": {}}), json!({}), true);
        check(json!({"properties": {"a": {}}}), json!({"properties": {}}), false);
        // A property may have any name.
        check(
            json!({"properties": {"default": {"required": []}}}),
            json!({"properties": {"default": {}}}),
            true,
        );
    }
}
