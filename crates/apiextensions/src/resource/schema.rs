//! The schema of one version's objects.

use arc_swap::ArcSwap;
use pintle_cacher::CachedObject;
use pintle_machinery::{Value, ValueExt, codec::json};
use pintle_registry::LazySchema;
use pintle_schema::{
    FieldSpec, ListType, MapType, NodeId, Schema, SchemaBuilder, StructSpec, Structural, Type,
};
use std::sync::{Arc, LazyLock};

/// Where a definition's JSON is: the newest that the cache holds, so that no older one is kept for the schemas alone.
pub(crate) type Source = Arc<ArcSwap<CachedObject>>;

/// The schema of a version, made from the definition's JSON when it is first needed.
pub(super) fn lazy_schema(source: &Source, version: &str) -> Arc<LazySchema> {
    let (source, version) = (source.clone(), version.to_owned());
    Arc::new(LazyLock::new(Box::new(move || {
        let tree = json::decode_any(source.load().json()).unwrap_or_default();
        let versions = tree.items_at("spec.versions").iter();
        let own = versions.into_iter().find(|own| own.str_at("name") == version);
        let schema = own.and_then(|own| own.at("schema.openAPIV3Schema"));
        Arc::new(build(schema.unwrap_or(&Value::Null)))
    })))
}

fn build(schema: &Value) -> Schema {
    let mut builder = SchemaBuilder::new();
    let root = struct_node(&mut builder, schema, true, 0);
    builder.finish(root)
}

const MAX_DEPTH: usize = 100;

fn node(builder: &mut SchemaBuilder, schema: &Value, depth: usize) -> NodeId {
    if depth > MAX_DEPTH {
        return builder.scalar(Type::Any);
    }
    let id = match schema.str_at("type") {
        "object" if schema.at("additionalProperties").is_some_and(Value::is_object) => {
            let value = schema.at("additionalProperties").cloned().unwrap_or_default();
            let value = node(builder, &value, depth + 1);
            builder.map(value, MapType::Granular)
        }
        "object" => {
            return struct_node(builder, schema, schema.bool_at("x-kubernetes-embedded-resource"), depth);
        }
        "array" => {
            let items = schema.at("items").cloned().unwrap_or_default();
            let item = node(builder, &items, depth + 1);
            let list_type = match schema.str_at("x-kubernetes-list-type") {
                "set" => ListType::Set,
                "map" => ListType::Map,
                _ => ListType::Atomic,
            };
            let keys: Vec<&str> =
                schema.items_at("x-kubernetes-list-map-keys").iter().filter_map(Value::as_str).collect();
            builder.list(item, list_type, &keys)
        }
        "string" => builder.scalar(Type::String),
        "boolean" => builder.scalar(Type::Bool),
        "integer" => builder.scalar(Type::Int64),
        "number" => builder.scalar(Type::Float64),
        _ => builder.scalar(Type::Any),
    };
    set_structural(builder, id, schema);
    id
}

fn set_structural(builder: &mut SchemaBuilder, id: NodeId, schema: &Value) {
    builder.set_structural(
        id,
        Structural {
            nullable: schema.bool_at("nullable"),
            preserve_unknown_fields: schema.bool_at("x-kubernetes-preserve-unknown-fields"),
            embedded_resource: schema.bool_at("x-kubernetes-embedded-resource"),
            default: schema.at("default").cloned(),
        },
    );
}

fn struct_node(builder: &mut SchemaBuilder, schema: &Value, is_resource: bool, depth: usize) -> NodeId {
    let id = builder.reserve();
    let mut fields = Vec::new();
    if is_resource {
        let text = builder.scalar(Type::String);
        fields.push((FieldSpec { name: "kind", ..FieldSpec::default() }, text));
        fields.push((FieldSpec { name: "apiVersion", ..FieldSpec::default() }, text));
        if let Some(meta) = Schema::builtin().by_type_name("k8s.io/apimachinery/pkg/apis/meta/v1.ObjectMeta")
        {
            let meta = builder.builtin(meta);
            fields.push((FieldSpec { name: "metadata", ..FieldSpec::default() }, meta));
        }
    }
    let properties = schema.at("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        if is_resource && matches!(name.as_str(), "kind" | "apiVersion" | "metadata") {
            continue;
        }
        let own = node(builder, property, depth + 1);
        fields.push((
            FieldSpec { name, default: property.at("default").cloned(), ..FieldSpec::default() },
            own,
        ));
    }
    builder.set_struct(id, StructSpec { fields, ..StructSpec::default() });
    set_structural(builder, id, schema);
    id
}
