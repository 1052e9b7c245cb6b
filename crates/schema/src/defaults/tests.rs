use pintle_tree::json;

use super::*;
use crate::{FieldSpec, ListType, MapType, Schema, SchemaBuilder, StructSpec, Structural};

fn check(group: &str, kind: &str, mut tree: Value, expected: &Value) {
    let schema = Schema::builtin().by_kind(group, "v1", kind).unwrap();
    default_by_schema(&mut tree, schema);
    assert_eq!(&tree, expected);
}

#[test]
fn absent_fields_of_what_is_there_get_their_defaults() {
    for (group, kind, tree, expected) in [
        (
            "",
            "Pod",
            json!({"spec": {"containers": [{"ports": [{"containerPort": 1}]}]}}),
            json!({"spec": {"containers": [{"ports": [{"containerPort": 1, "protocol": "TCP"}]}]}}),
        ),
        (
            "",
            "Pod",
            json!({"spec": {"volumes": [{"rbd": {"pool": "p"}}, {"azureDisk": {"readOnly": true}}]}}),
            json!({"spec": {"volumes": [
             {"rbd": {"pool": "p", "user": "admin", "keyring": "/etc/ceph/keyring"}},
             {"azureDisk": {"cachingMode": "ReadWrite", "fsType": "ext4", "kind": "Shared", "readOnly": true}}]}}),
        ),
        // A pointer's default may be empty; a default that is another type's zero value is not applied.
        (
            "",
            "Pod",
            json!({"spec": {"containers": [{"livenessProbe": {"grpc": {"port": 1}}}], "imagePullSecrets": [{}]}}),
            json!({"spec": {"containers": [{"livenessProbe": {"grpc": {"port": 1, "service": ""}}}], "imagePullSecrets": [{}]}}),
        ),
        // An absent struct that is not a pointer gets defaults; an absent pointer gets none.
        ("", "ReplicationController", json!({}), json!({"spec": {"replicas": 1}})),
        ("", "ReplicationController", json!({"spec": {"replicas": 0}}), json!({"spec": {"replicas": 0}})),
        ("", "ConfigMap", json!({"data": {}}), json!({"data": {}})),
        ("", "Pod", json!({"spec": "nonsense"}), json!({"spec": "nonsense"})),
    ] {
        check(group, kind, tree, &expected);
    }
}

#[test]
fn custom_resources_get_theirs_below_what_is_there() {
    let mut builder = SchemaBuilder::new();
    let text = builder.scalar(Type::String);
    builder.set_structural(text, Structural { default: Some(json!("item")), ..Structural::default() });
    let list = builder.list(text, ListType::Atomic, &[]);
    let map = builder.map(text, MapType::Granular);
    let inner = builder.reserve();
    let field = |name, default| FieldSpec { name, default, ..FieldSpec::default() };
    builder.set_struct(
        inner,
        StructSpec {
            fields: vec![
                (field("a", Some(json!(0))), text),
                (field("list", None), list),
                (field("map", None), map),
                (field("self", None), inner),
            ],
            ..StructSpec::default()
        },
    );
    let root = builder.reserve();
    let fields = vec![(field("x", None), inner), (field("y", Some(json!({}))), inner)];
    builder.set_struct(root, StructSpec { fields, ..StructSpec::default() });
    let schema = builder.finish(root);
    for (mut tree, expected) in [
        (json!({}), json!({"y": {"a": 0}})),
        (json!({"x": {"self": {}}, "y": {"a": 1}}), json!({"x": {"a": 0, "self": {"a": 0}}, "y": {"a": 1}})),
        (
            json!({"y": {"a": null, "list": [null, "b"], "map": {"k": null}}}),
            json!({"y": {"a": "item", "list": ["item", "b"], "map": {"k": "item"}}}),
        ),
    ] {
        default_by_schema(&mut tree, schema.root());
        assert_eq!(tree, expected);
    }
}
