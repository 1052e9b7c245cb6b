//! Converts types of the schema to OpenAPI schemas.
//!
//! A named struct is a definition that others refer to, and so are the few scalars with a type of their own (times,
//! quantities). Other types are written inline.

use crate::{
    descriptions::Descriptions,
    names::{definition, definition_of, meta},
};
use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::{GroupVersion, GroupVersionKind, Map, Value, json};
use pintle_schema::{FieldRef, ListType, MapType, Omit, Schema, SchemaRef, Type};
use std::collections::BTreeSet;

/// The two versions of OpenAPI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// OpenAPI 2, without alternatives and, as in the reference, without defaults.
    V2,
    /// OpenAPI 3.
    V3,
}

impl Dialect {
    fn reference(self, definition: &str) -> String {
        match self {
            Dialect::V2 => format!("#/definitions/{definition}"),
            Dialect::V3 => format!("#/components/schemas/{definition}"),
        }
    }

    /// A reference to a definition.
    pub(crate) fn reference_to(self, definition: &str) -> Value {
        json!({"$ref": self.reference(definition)})
    }
}

/// The definition name of a kind of the schema.
pub(crate) fn name_of_kind(kind: &GroupVersionKind) -> String {
    match Schema::builtin().by_kind(&kind.group, &kind.version, &kind.kind) {
        Some(found) => definition(found.package(), found.name()),
        None => definition(&format!("{}/{}", kind.group, kind.version), &kind.kind),
    }
}

/// Builds definitions.
pub(crate) struct Definitions<'a> {
    pub(crate) dialect: Dialect,
    pub(crate) descriptions: &'a Descriptions,
    /// The versions of the document: request kinds such as `DeleteOptions` belong to each of them.
    pub(crate) versions: &'a [GroupVersion],
}

impl Definitions<'_> {
    /// Visits the named definitions and all that they refer to, each once.
    ///
    /// # Errors
    /// The first error of `visit`, which ends the visits.
    pub(crate) fn visit<'n, E>(
        &self,
        names: impl Iterator<Item = &'n str>,
        mut visit: impl FnMut(&str, &Value) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut seen: BTreeSet<String> = names.map(str::to_owned).collect();
        let mut waiting: Vec<String> = seen.iter().cloned().collect();
        let mut found = Vec::new();
        while let Some(name) = waiting.pop() {
            let value = self.definition(&name);
            collect_references(&value, &mut found);
            for reference in found.drain(..) {
                if seen.insert(reference.clone()) {
                    waiting.push(reference);
                }
            }
            visit(&name, &value)?;
        }
        Ok(())
    }

    fn definition(&self, name: &str) -> Value {
        let mut value = match (scalar(self.dialect, name), schema_of(name)) {
            (Some(scalar), _) => self.with_descriptions(name, scalar),
            (None, Some(schema)) => self.structure(name, schema),
            (None, None) => json!({}),
        };
        if let (Some(description), Some(members)) = (self.describe(name), value.as_object_mut()) {
            members.insert("description", description);
        }
        value
    }

    /// Adds descriptions to the fields of a definition that is not built from the schema.
    fn with_descriptions(&self, name: &str, mut definition: Value) -> Value {
        let properties = definition.get_mut("properties").and_then(Value::as_object_mut);
        for (field, property) in properties.into_iter().flatten() {
            let description = self.descriptions.field(name, field);
            if let (Some(description), Some(members)) = (description, property.as_object_mut()) {
                members.insert("description", description);
            }
        }
        definition
    }

    /// The source of the other descriptions has none for lists and generic types.
    fn describe(&self, name: &str) -> Option<Value> {
        self.descriptions.definition(name).or_else(|| {
            if name == meta("WatchEvent") {
                return Some(json!("WatchEvent is one change in the stream of a watch."));
            }
            if name == meta("Patch") {
                return Some(json!("Patch is a change, in the form that its media type says."));
            }
            let kind =
                name.strip_suffix("List").filter(|kind| self.descriptions.definition(kind).is_some())?;
            let (_, kind) = kind.rsplit_once('.')?;
            Some(json!(format!("{kind}List is a list of objects of kind {kind}.")))
        })
    }

    fn describe_field(&self, definition: &str, field: FieldRef<'_>) -> Option<Value> {
        self.descriptions.field(definition, field.name()).or_else(|| {
            let list = definition.ends_with("List");
            let text = match field.name() {
                "items" if list => {
                    let kind = definition.strip_suffix("List").and_then(|kind| kind.rsplit('.').next());
                    return kind.map(|kind| json!(format!("List of {}.", plural(kind))));
                }
                // All kinds share the descriptions of these two fields.
                name @ ("apiVersion" | "kind") => {
                    return self.descriptions.field("io.k8s.api.core.v1.Pod", name);
                }
                "type" if definition == meta("WatchEvent") => {
                    "type is ADDED, MODIFIED, DELETED, BOOKMARK or ERROR."
                }
                "object" if definition == meta("WatchEvent") => {
                    "object is the object after the change, before it when it was deleted, or a Status on errors."
                }
                "metadata" if list => "metadata is what the list has as a whole.",
                _ => return None,
            };
            Some(json!(text))
        })
    }

    fn structure(&self, name: &str, schema: SchemaRef<'_>) -> Value {
        let mut value = Map::new();
        let properties: Map =
            schema.fields().map(|field| (field.name().to_owned(), self.field(name, field))).collect();
        let required: Vec<&str> =
            schema.fields().filter(|field| is_required(*field)).map(FieldRef::name).collect();
        value.insert("type", json!("object"));
        if !properties.is_empty() {
            value.insert("properties", properties.into());
        }
        if !required.is_empty() {
            value.insert("required", json!(required));
        }
        if schema.map_type() == MapType::Atomic {
            value.insert("x-kubernetes-map-type", json!("atomic"));
        }
        if let Some(unions) = unions(name) {
            value.insert("x-kubernetes-unions", json!([unions]));
        }
        let kinds = self.kinds(schema);
        if !kinds.is_empty() {
            value.insert("x-kubernetes-group-version-kind", kinds.into());
        }
        value.into()
    }

    /// The kinds that a definition describes.
    fn kinds(&self, schema: SchemaRef<'_>) -> Vec<Value> {
        let kind = schema.name();
        let core = GroupVersion::new("", "v1");
        let versions = match schema.group_version() {
            ("", "") if matches!(kind, "DeleteOptions" | "WatchEvent") => {
                let mut versions = vec![core];
                versions.extend(self.versions.iter().cloned());
                versions.sort();
                versions.dedup();
                versions
            }
            ("", "") if schema.is_object() => vec![core],
            (group, version) if schema.is_object() => vec![GroupVersion::new(group, version)],
            _ => Vec::new(),
        };
        let kinds = versions.iter();
        kinds
            .map(|version| json!({"group": version.group, "version": version.version, "kind": kind}))
            .collect()
    }

    fn field(&self, definition: &str, field: FieldRef<'_>) -> Value {
        let mut siblings = Map::new();
        if let Some(description) = self.describe_field(definition, field) {
            siblings.insert("description", description);
        }
        let default = if self.dialect == Dialect::V3 { default_of(field) } else { None };
        if let Some(default) = default {
            siblings.insert("default", default);
        }
        topology(field, &mut siblings);
        let strategy = field.patch_strategy();
        let strategies: Vec<&str> =
            [(strategy.merge, "merge"), (strategy.retain_keys, "retainKeys"), (strategy.replace, "replace")]
                .into_iter()
                .filter_map(|(has, name)| has.then_some(name))
                .collect();
        if !strategies.is_empty() {
            siblings.insert("x-kubernetes-patch-strategy", json!(strategies.join(",")));
        }
        if let Some(key) = field.patch_merge_key() {
            siblings.insert("x-kubernetes-patch-merge-key", json!(key));
        }
        let mut value = match self.value(field.ty()) {
            // OpenAPI 3 ignores siblings of a reference.
            Value::Object(reference)
                if self.dialect == Dialect::V3 && reference.contains_key("$ref") && !siblings.is_empty() =>
            {
                Map::from_iter([("allOf".to_owned(), json!([reference]))])
            }
            Value::Object(members) => members,
            _ => Map::new(),
        };
        value.extend(siblings);
        value.into()
    }

    /// The inline schema of a type.
    fn value(&self, schema: SchemaRef<'_>) -> Value {
        let refer = |package: &str, name: &str| self.dialect.reference_to(&definition(package, name));
        match schema.ty() {
            Type::Bool => json!({"type": "boolean"}),
            Type::Int32 => json!({"type": "integer", "format": "int32"}),
            Type::Int64 => json!({"type": "integer", "format": "int64"}),
            Type::Float64 => json!({"type": "number", "format": "double"}),
            Type::String => text(schema),
            Type::Bytes => json!({"type": "string", "format": "byte"}),
            Type::Time => self.dialect.reference_to(&meta("Time")),
            Type::MicroTime => self.dialect.reference_to(&meta("MicroTime")),
            Type::Duration => self.dialect.reference_to(&meta("Duration")),
            Type::FieldsV1 => self.dialect.reference_to(&meta("FieldsV1")),
            Type::Quantity => refer("k8s.io/apimachinery/pkg/api/resource", "Quantity"),
            Type::IntOrString => refer("k8s.io/apimachinery/pkg/util/intstr", "IntOrString"),
            Type::RawExtension => refer("k8s.io/apimachinery/pkg/runtime", "RawExtension"),
            Type::Json => refer("k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1", "JSON"),
            Type::Any => json!({"type": "object"}),
            Type::Struct | Type::Union(_) => refer(schema.package(), schema.name()),
            Type::List => json!({"type": "array", "items": self.value(schema.item())}),
            Type::Map => json!({"type": "object", "additionalProperties": self.value(schema.value())}),
        }
    }
}

/// The schema of a string or an enum.
fn text(schema: SchemaRef<'_>) -> Value {
    let mut values: Vec<&str> = schema.enum_values().collect();
    if values.is_empty() || !enabled(Gate::OpenAPIEnums) {
        return json!({"type": "string"});
    }
    values.sort_unstable();
    json!({"type": "string", "enum": values})
}

/// Adds the extensions for server-side apply that a list or map declares.
fn topology(field: FieldRef<'_>, siblings: &mut Map) {
    if !field.is_topology_marked() {
        return;
    }
    let schema = field.ty();
    // In Go, bytes are a list too.
    if matches!(schema.ty(), Type::List | Type::Bytes) {
        let list_type = match schema.list_type() {
            ListType::Atomic => "atomic",
            ListType::Set => "set",
            ListType::Map => "map",
        };
        siblings.insert("x-kubernetes-list-type", json!(list_type));
        let keys: Vec<&str> = schema.list_map_keys().collect();
        if !keys.is_empty() {
            siblings.insert("x-kubernetes-list-map-keys", json!(keys));
        }
    } else {
        let map_type = match schema.map_type() {
            MapType::Atomic => "atomic",
            MapType::Granular => "granular",
        };
        siblings.insert("x-kubernetes-map-type", json!(map_type));
    }
}

/// Whether a field is required: declared so, or neither optional nor omitted when empty.
fn is_required(field: FieldRef<'_>) -> bool {
    field.is_required() || (!field.is_optional() && field.omit() == Omit::Never)
}

/// The default of an absent field: the declared one, or the zero value where absent and zero do not differ.
fn default_of(field: FieldRef<'_>) -> Option<Value> {
    if let Some(default) = field.default() {
        return Some(default.clone());
    }
    if field.is_pointer() {
        return None;
    }
    match field.ty().ty() {
        Type::Struct => Some(json!({})),
        _ if field.omit() != Omit::Never => None,
        Type::Bool => Some(json!(false)),
        Type::Int32 | Type::Int64 | Type::Float64 => Some(json!(0)),
        Type::String => Some(json!("")),
        _ => None,
    }
}

/// The definitions that are not structs.
fn scalar(dialect: Dialect, definition: &str) -> Option<Value> {
    let name = definition.strip_prefix("io.k8s.")?;
    let v3 = dialect == Dialect::V3;
    Some(match name {
        "apimachinery.pkg.apis.meta.v1.Time" | "apimachinery.pkg.apis.meta.v1.MicroTime" => {
            json!({"type": "string", "format": "date-time"})
        }
        "apimachinery.pkg.api.resource.Quantity" if v3 => {
            json!({"oneOf": [{"type": "string"}, {"type": "number"}]})
        }
        "apimachinery.pkg.apis.meta.v1.Duration" | "apimachinery.pkg.api.resource.Quantity" => {
            json!({"type": "string"})
        }
        "apimachinery.pkg.util.intstr.IntOrString" if v3 => {
            json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]})
        }
        "apimachinery.pkg.util.intstr.IntOrString" => json!({"format": "int-or-string", "type": "string"}),
        "apimachinery.pkg.runtime.RawExtension"
        | "apimachinery.pkg.apis.meta.v1.FieldsV1"
        | "apimachinery.pkg.apis.meta.v1.Patch" => json!({"type": "object"}),
        "apimachinery.pkg.version.Info" => version_info(v3),
        // Any JSON value, or one of two shapes.
        "apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON"
        | "apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray"
        | "apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool"
        | "apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray" => json!({}),
        _ => return None,
    })
}

/// The type of the `/version` response, which is not an API object and so not in the schema.
fn version_info(with_defaults: bool) -> Value {
    const REQUIRED: [&str; 9] = [
        "major",
        "minor",
        "gitVersion",
        "gitCommit",
        "gitTreeState",
        "buildDate",
        "goVersion",
        "compiler",
        "platform",
    ];
    const OPTIONAL: [&str; 4] =
        ["emulationMajor", "emulationMinor", "minCompatibilityMajor", "minCompatibilityMinor"];
    let mut properties: Map =
        OPTIONAL.map(|name| (name.to_owned(), json!({"type": "string"}))).into_iter().collect();
    for name in REQUIRED {
        let value = match with_defaults {
            true => json!({"type": "string", "default": ""}),
            false => json!({"type": "string"}),
        };
        properties.insert(name, value);
    }
    json!({"type": "object", "properties": properties, "required": REQUIRED})
}

/// The types whose fields exclude each other, with the discriminator field.
fn unions(definition: &str) -> Option<Value> {
    Some(match definition.strip_prefix("io.k8s.api.")? {
        "core.v1.AppArmorProfile" | "core.v1.SeccompProfile" => json!({
            "discriminator": "type", "fields-to-discriminateBy": {"localhostProfile": "LocalhostProfile"},
        }),
        "core.v1.PodSchedulingGroup" => json!({"fields-to-discriminateBy": {"podGroupName": "PodGroupName"}}),
        "flowcontrol.v1.LimitResponse" => json!({
            "discriminator": "type", "fields-to-discriminateBy": {"queuing": "Queuing"},
        }),
        "flowcontrol.v1.PriorityLevelConfigurationSpec" => json!({
            "discriminator": "type", "fields-to-discriminateBy": {"exempt": "Exempt", "limited": "Limited"},
        }),
        "flowcontrol.v1.Subject" => json!({
            "discriminator": "kind",
            "fields-to-discriminateBy": {
                "group": "Group", "serviceAccount": "ServiceAccount", "user": "User",
            },
        }),
        "scheduling.v1alpha2.PodGroupSchedulingPolicy" => json!({
            "fields-to-discriminateBy": {"basic": "Basic", "gang": "Gang"},
        }),
        "scheduling.v1alpha2.PodGroupTemplateReference" => json!({
            "fields-to-discriminateBy": {"workload": "Workload"},
        }),
        _ => return None,
    })
}

/// The struct that a definition describes.
fn schema_of(definition: &str) -> Option<SchemaRef<'static>> {
    let (package, name) = definition.strip_prefix("io.k8s.")?.rsplit_once('.')?;
    let type_name = format!("k8s.io/{}.{name}", package.replace('.', "/"));
    debug_assert_eq!(definition_of(&type_name), definition);
    Schema::builtin().by_type_name(&type_name)
}

/// The regular plural of a kind.
fn plural(kind: &str) -> String {
    let kind = kind.to_lowercase();
    match (kind.strip_suffix('y'), kind.ends_with('s')) {
        (Some(stem), _) => format!("{stem}ies"),
        (None, true) => format!("{kind}es"),
        (None, false) => format!("{kind}s"),
    }
}

/// Adds the names of the definitions that a value refers to.
fn collect_references(value: &Value, names: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member.as_str().filter(|_| name == "$ref") {
                    Some(reference) => {
                        names.extend(reference.rsplit('/').next().map(str::to_owned));
                    }
                    None => collect_references(member, names),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_references(item, names)),
        _ => {}
    }
}
