//! A schema of a definition (`JSONSchemaProps`), parsed once for all the checks that walk it.
//!
//! Nothing is copied: texts and values stay in the definition's tree. Recursion here and in the checks is bounded,
//! because the decoders refuse trees deeper than [`pintle_machinery::codec::MAX_DEPTH`].

use pintle_machinery::{Text, Value};

/// One schema, with the members that most checks read; the others stay in the tree.
#[derive(Debug, Default)]
pub(super) struct JsonSchemaProps<'a> {
    pub(super) tree: Option<&'a Value>,
    pub(super) ty: &'a str,
    pub(super) format: &'a str,
    pub(super) pattern: &'a str,
    pub(super) default: Option<&'a Value>,
    pub(super) nullable: bool,
    pub(super) unique_items: bool,
    pub(super) max_items: Option<i64>,
    pub(super) max_properties: Option<i64>,
    pub(super) required: &'a [Value],
    pub(super) items: Option<Items<'a>>,
    pub(super) all_of: Vec<JsonSchemaProps<'a>>,
    pub(super) any_of: Vec<JsonSchemaProps<'a>>,
    pub(super) one_of: Vec<JsonSchemaProps<'a>>,
    pub(super) not: Option<Box<JsonSchemaProps<'a>>>,
    pub(super) properties: Named<'a>,
    pub(super) additional_properties: Option<SchemaOrBool<'a>>,
    /// Members that structural schemas must not have.
    pub(super) unsupported: Option<Box<Unsupported<'a>>>,
    pub(super) preserve_unknown_fields: Option<bool>,
    pub(super) embedded_resource: bool,
    pub(super) int_or_string: bool,
    pub(super) list_map_keys: &'a [Value],
    pub(super) list_type: Option<&'a str>,
    pub(super) map_type: Option<&'a str>,
    pub(super) validations: &'a [Value],
}

/// Schemas by name, sorted.
pub(super) type Named<'a> = Vec<(&'a str, JsonSchemaProps<'a>)>;

/// `items`: one schema, or a list of them, which is rejected.
#[derive(Debug)]
pub(super) enum Items<'a> {
    One(Box<JsonSchemaProps<'a>>),
    Many(Vec<JsonSchemaProps<'a>>),
}

/// `additionalProperties` and `additionalItems`: a schema, or whether any value is allowed.
#[derive(Debug)]
pub(super) struct SchemaOrBool<'a> {
    pub(super) allows: bool,
    pub(super) schema: Option<Box<JsonSchemaProps<'a>>>,
}

/// The dependency of a property.
#[derive(Debug)]
pub(super) enum Dependency<'a> {
    Schema(Box<JsonSchemaProps<'a>>),
    /// Required properties.
    Properties(&'a Value),
}

/// Parts of JSON Schema that the API defines but rejects.
#[derive(Debug, Default)]
pub(super) struct Unsupported<'a> {
    pub(super) id: &'a str,
    pub(super) schema: &'a str,
    pub(super) reference: Option<&'a str>,
    pub(super) pattern_properties: Named<'a>,
    /// `None` when absent: an empty one is rejected too.
    pub(super) dependencies: Option<Vec<(&'a str, Dependency<'a>)>>,
    pub(super) additional_items: Option<SchemaOrBool<'a>>,
    pub(super) definitions: Named<'a>,
}

impl<'a> JsonSchemaProps<'a> {
    /// Parses a schema. Members have the declared types, since the tree was decoded by the API's schema.
    pub(super) fn read(tree: &'a Value) -> JsonSchemaProps<'a> {
        let Value::Object(members) = tree else { return JsonSchemaProps::default() };
        let mut schema = JsonSchemaProps { tree: Some(tree), ..JsonSchemaProps::default() };
        for (name, value) in members {
            if !value.is_null() {
                schema.member(name, value);
            }
        }
        schema
    }

    fn member(&mut self, name: &str, value: &'a Value) {
        match name {
            "type" => self.ty = text(value),
            "format" => self.format = text(value),
            "pattern" => self.pattern = text(value),
            "default" => self.default = Some(value),
            "nullable" => self.nullable = value == true,
            "uniqueItems" => self.unique_items = value == true,
            "maxItems" => self.max_items = value.as_i64(),
            "maxProperties" => self.max_properties = value.as_i64(),
            "required" => self.required = list(value),
            "items" => {
                self.items = Some(match value {
                    Value::Array(items) => Items::Many(items.iter().map(Self::read).collect()),
                    one => Items::One(Box::new(Self::read(one))),
                });
            }
            "allOf" => self.all_of = list(value).iter().map(Self::read).collect(),
            "anyOf" => self.any_of = list(value).iter().map(Self::read).collect(),
            "oneOf" => self.one_of = list(value).iter().map(Self::read).collect(),
            "not" => self.not = Some(Box::new(Self::read(value))),
            "properties" => self.properties = named(value),
            "additionalProperties" => self.additional_properties = Some(SchemaOrBool::read(value)),
            "x-kubernetes-preserve-unknown-fields" => self.preserve_unknown_fields = value.as_bool(),
            "x-kubernetes-embedded-resource" => self.embedded_resource = value == true,
            "x-kubernetes-int-or-string" => self.int_or_string = value == true,
            "x-kubernetes-list-map-keys" => self.list_map_keys = list(value),
            "x-kubernetes-list-type" => self.list_type = value.as_str(),
            "x-kubernetes-map-type" => self.map_type = value.as_str(),
            "x-kubernetes-validations" => self.validations = list(value),
            "id" => self.unsupported().id = text(value),
            "$schema" => self.unsupported().schema = text(value),
            "$ref" => self.unsupported().reference = value.as_str(),
            "patternProperties" => self.unsupported().pattern_properties = named(value),
            "definitions" => self.unsupported().definitions = named(value),
            "additionalItems" => self.unsupported().additional_items = Some(SchemaOrBool::read(value)),
            "dependencies" => {
                let members = value.as_object().into_iter().flatten();
                let read = |(name, value): (&'a Text, &'a Value)| {
                    let dependency = match value {
                        Value::Object(_) => Dependency::Schema(Box::new(Self::read(value))),
                        names => Dependency::Properties(names),
                    };
                    (name.as_str(), dependency)
                };
                self.unsupported().dependencies = Some(members.map(read).collect());
            }
            _ => {}
        }
    }

    fn unsupported(&mut self) -> &mut Unsupported<'a> {
        self.unsupported.get_or_insert_default()
    }

    /// A member that few checks read.
    pub(super) fn get(&self, name: &str) -> Option<&'a Value> {
        self.tree?.as_object()?.get(name).filter(|value| !value.is_null())
    }

    /// The members that are present.
    pub(super) fn members(&self) -> impl Iterator<Item = (&'a str, &'a Value)> {
        let members = self.tree.and_then(Value::as_object).into_iter().flatten();
        members.filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.as_str(), value))
    }

    /// The schema of a property.
    pub(super) fn property(&self, name: &str) -> Option<&JsonSchemaProps<'a>> {
        let at = self.properties.binary_search_by(|(own, _)| (*own).cmp(name)).ok()?;
        self.properties.get(at).map(|(_, schema)| schema)
    }

    /// The one schema of all items.
    pub(super) fn item(&self) -> Option<&JsonSchemaProps<'a>> {
        match &self.items {
            Some(Items::One(schema)) => Some(schema),
            _ => None,
        }
    }

    /// The schema of additional properties.
    pub(super) fn additional(&self) -> Option<&JsonSchemaProps<'a>> {
        self.additional_properties.as_ref()?.schema.as_deref()
    }

    /// Whether this schema or one of its descendants meets a condition.
    pub(super) fn has(&self, condition: &mut dyn FnMut(&JsonSchemaProps<'a>) -> bool) -> bool {
        if condition(self) {
            return true;
        }
        let in_items = match &self.items {
            Some(Items::One(schema)) => schema.has(condition),
            Some(Items::Many(schemas)) => schemas.iter().any(|schema| schema.has(condition)),
            None => false,
        };
        in_items
            || self.all_of.iter().any(|schema| schema.has(condition))
            || self.any_of.iter().any(|schema| schema.has(condition))
            || self.one_of.iter().any(|schema| schema.has(condition))
            || self.not.as_ref().is_some_and(|schema| schema.has(condition))
            || self.properties.iter().any(|(_, schema)| schema.has(condition))
            || self.additional().is_some_and(|schema| schema.has(condition))
            || self.unsupported.as_ref().is_some_and(|unsupported| unsupported.has(condition))
    }
}

impl<'a> Unsupported<'a> {
    fn has(&self, condition: &mut dyn FnMut(&JsonSchemaProps<'a>) -> bool) -> bool {
        self.pattern_properties.iter().any(|(_, schema)| schema.has(condition))
            || self
                .additional_items
                .as_ref()
                .and_then(|items| items.schema.as_ref())
                .is_some_and(|schema| schema.has(condition))
            || self.definitions.iter().any(|(_, schema)| schema.has(condition))
            || self.dependent_schemas().any(|(_, schema)| schema.has(condition))
    }

    /// Schemas that apply when a property is present.
    pub(super) fn dependent_schemas(&self) -> impl Iterator<Item = (&'a str, &JsonSchemaProps<'a>)> {
        self.dependencies.iter().flatten().filter_map(|(name, dependency)| match dependency {
            Dependency::Schema(schema) => Some((*name, &**schema)),
            Dependency::Properties(_) => None,
        })
    }
}

impl<'a> SchemaOrBool<'a> {
    fn read(value: &'a Value) -> SchemaOrBool<'a> {
        match value {
            Value::Bool(allows) => SchemaOrBool { allows: *allows, schema: None },
            schema => SchemaOrBool { allows: true, schema: Some(Box::new(JsonSchemaProps::read(schema))) },
        }
    }
}

fn named(value: &Value) -> Named<'_> {
    let members = value.as_object().into_iter().flatten();
    members.map(|(name, schema)| (name.as_str(), JsonSchemaProps::read(schema))).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}
