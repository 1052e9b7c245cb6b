//! Tests that what selectors read of a stored object is what they would read of the whole object.

use pintle_apiserver::registry::{ObjectCodec, TypeSchema};
use pintle_cacher::ObjectDecoder;
use pintle_machinery::{Value, json};
use pintle_registry::Resource;
use pintle_schema::{SchemaRef, Type};
use pintle_storage::{Key, Revision};

/// An object with every field down to a depth, each with a value of its own.
fn full(schema: SchemaRef<'_>, depth: usize, next: &mut i64) -> Option<Value> {
    *next += 1;
    Some(match schema.ty() {
        Type::Bool => json!(true),
        Type::Int32 | Type::Int64 => json!(*next),
        Type::String => json!(format!("text {next}")),
        Type::Struct if depth > 0 => {
            let fields = schema.fields();
            fields.filter_map(|field| Some((field.name(), full(field.ty(), depth - 1, next)?))).collect()
        }
        Type::Map if depth > 0 => json!({"key": full(schema.value(), depth - 1, next)?}),
        Type::List if depth > 0 => json!([full(schema.item(), depth - 1, next)?]),
        _ => return None,
    })
}

fn check(resource: &Resource, all: bool) -> usize {
    let schema = TypeSchema::of(resource).unwrap();
    let mut tree = full(schema.get(), if all { 5 } else { 1 }, &mut 0).unwrap();
    tree["kind"] = resource.kind.as_str().into();
    tree["metadata"]["labels"] = json!({"app": "web", "tier": "{[\"\\"});
    let codec = ObjectCodec::new(resource, schema, "/p/".into());
    let key = if resource.is_namespaced() { "/p/space/name" } else { "/p/name" };
    let stored = codec.encode(&tree);
    // As the encoder writes it.
    let tree = codec.decode_tree(&stored).unwrap();
    let decoded = codec.decode(&Key::new(key), &stored.into(), Revision(7)).unwrap();
    let names = resource.selectable_fields.iter().map(|field| field.name.as_str());
    let read: Vec<_> = names.clone().zip(decoded.selectable.fields.iter().map(|value| &**value)).collect();
    let expected = resource.selectable_fields.iter().map(|field| (field.value)(&tree, &field.name));
    let expected: Vec<String> = expected.collect();
    assert_eq!(read, names.zip(expected.iter().map(String::as_str)).collect::<Vec<_>>(), "{}", resource.kind);
    let labels: Vec<_> = decoded.selectable.labels.iter().collect();
    assert_eq!(labels, [("app", "web"), ("tier", "{[\"\\")], "{}", resource.kind);
    expected.iter().filter(|value| !value.is_empty()).count()
}

#[test]
fn selectors_read_the_same_of_stored_objects_of_every_kind() {
    let mut values = 0;
    let of_default = pintle_api::resources(&pintle_api::Config::default());
    for resource in of_default.iter().chain(&pintle_api::resources_off_by_default()) {
        if resource.is_stored() {
            values += check(resource, true);
            check(resource, false);
        }
    }
    assert!(values >= 48, "{values}");
}
