use super::*;
use crate::ValueExt;
use pintle_schema::Schema;
use pintle_tree::json;

fn schema(kind: &str) -> SchemaRef<'static> {
    let (group, version, kind) = match kind {
        "Deployment" => ("apps", "v1", kind),
        _ => ("", "v1", kind),
    };
    Schema::builtin().by_kind(group, version, kind).unwrap()
}

fn pod_spec(spec: Value) -> Value {
    json!({"spec": spec})
}

#[test]
fn patches_merge_by_the_schema() {
    let rows = [
        // Scalars and maps.
        (json!({"a": 1}), json!({"activeDeadlineSeconds": 5}), json!({"a": 1, "activeDeadlineSeconds": 5})),
        (json!({"nodeName": "a"}), json!({"nodeName": null}), json!({})),
        // Structs that Go's types have always.
        (
            json!({"containers": [{"name": "a"}]}),
            json!({"containers": [{"name": "a", "resources": {"$patch": "replace", "limits": {"cpu": "1"}}}]}),
            json!({"containers": [{"name": "a", "resources": {"limits": {"cpu": "1"}}}]}),
        ),
        (json!({}), json!({"nodeName": null}), json!({})),
        (
            json!({"nodeSelector": {"a": "1", "b": "2"}}),
            json!({"nodeSelector": {"a": null, "c": "3"}}),
            json!({"nodeSelector": {"b": "2", "c": "3"}}),
        ),
        (
            json!({"nodeSelector": {"a": "1"}}),
            json!({"nodeSelector": {"$patch": "replace", "b": "2"}}),
            json!({"nodeSelector": {"b": "2"}}),
        ),
        (
            json!({"nodeSelector": {"a": "1"}}),
            json!({"nodeSelector": {"$patch": "delete"}}),
            json!({"nodeSelector": {}}),
        ),
        (json!({}), json!({"nodeSelector": {"$patch": "delete"}}), json!({})),
        (json!({}), json!({"nodeSelector": {"a": null, "b": "1"}}), json!({"nodeSelector": {"b": "1"}})),
        (json!({"nodeSelector": {"a": "1"}}), json!({"nodeSelector": ["a"]}), json!({"nodeSelector": ["a"]})),
        // Lists of objects.
        (
            json!({"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]}),
            json!({"containers": [{"name": "b", "image": "2"}]}),
            json!({"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "2"}]}),
        ),
        (
            json!({"containers": [{"name": "a"}, {"name": "b"}]}),
            json!({"containers": [{"name": "c"}]}),
            json!({"containers": [{"name": "c"}, {"name": "a"}, {"name": "b"}]}),
        ),
        (
            json!({"containers": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}),
            json!({"containers": [{"name": "c"}, {"name": "a"}]}),
            json!({"containers": [{"name": "b"}, {"name": "c"}, {"name": "a"}]}),
        ),
        (
            json!({"containers": [{"name": "a"}, {"name": "b"}]}),
            json!({"containers": [{"name": "a", "$patch": "delete"}, {"name": "none", "$patch": "delete"}]}),
            json!({"containers": [{"name": "b"}]}),
        ),
        (
            json!({"containers": [{"name": "a"}]}),
            json!({"containers": [{"$patch": "replace"}, {"name": "b"}, {"name": "c"}]}),
            json!({"containers": [{"name": "b"}, {"name": "c"}]}),
        ),
        (
            json!({"containers": [{"name": "a"}]}),
            json!({"containers": []}),
            json!({"containers": [{"name": "a"}]}),
        ),
        (
            json!({"containers": [{"name": "a", "args": ["x"]}]}),
            json!({"containers": [{"name": "a", "args": ["y"]}]}),
            json!({"containers": [{"name": "a", "args": ["y"]}]}),
        ),
        // Ports are identified by number; 80 and "80" differ.
        (
            json!({"containers": [{"name": "a", "ports": [{"containerPort": 80}, {"containerPort": 81}]}]}),
            json!({"containers": [{"name": "a", "ports": [{"containerPort": 81, "name": "x"}]}]}),
            json!({"containers": [{"name": "a", "ports": [{"containerPort": 80}, {"containerPort": 81, "name": "x"}]}]}),
        ),
        // Lists without a strategy are replaced.
        (
            json!({"tolerations": [{"key": "a"}]}),
            json!({"tolerations": [{"key": "b"}]}),
            json!({"tolerations": [{"key": "b"}]}),
        ),
        // Retained keys.
        (
            json!({"volumes": [{"name": "v", "emptyDir": {}}]}),
            json!({"volumes": [{"name": "v", "$retainKeys": ["name", "secret"], "secret": {"secretName": "s"}}]}),
            json!({"volumes": [{"name": "v", "secret": {"secretName": "s"}}]}),
        ),
        // Order.
        (
            json!({"containers": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}),
            json!({"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}]}),
            json!({"containers": [{"name": "b"}, {"name": "c"}, {"name": "a"}]}),
        ),
        (
            json!({"containers": [{"name": "main"}, {"name": "side"}, {"name": "third"}]}),
            json!({
                "$setElementOrder/containers": [{"name": "main"}, {"name": "new"}, {"name": "third"}],
                "containers": [{"name": "new", "image": "i"}],
            }),
            json!({"containers": [{"name": "main"}, {"name": "new", "image": "i"}, {"name": "side"}, {"name": "third"}]}),
        ),
        // A list without items to delete becomes an empty one.
        (
            json!({}),
            json!({
                "$setElementOrder/imagePullSecrets": [{"name": "a"}],
                "imagePullSecrets": [{"name": "b", "$patch": "delete"}],
            }),
            json!({"imagePullSecrets": []}),
        ),
        // A new item takes the place of a deleted one at the end of the stored list.
        (
            json!({"containers": [{"name": "old"}, {"name": "side"}]}),
            json!({
                "$setElementOrder/containers": [{"name": "new"}, {"name": "next"}],
                "containers": [{"name": "new"}, {"name": "next"}, {"name": "old", "$patch": "delete"}],
            }),
            json!({"containers": [{"name": "side"}, {"name": "new"}, {"name": "next"}]}),
        ),
        (
            json!({"containers": [{"name": "old"}, {"name": "side"}]}),
            json!({"$setElementOrder/containers": [{"name": "new"}], "containers": [{"name": "new"}]}),
            json!({"containers": [{"name": "new"}, {"name": "old"}, {"name": "side"}]}),
        ),
        (
            json!({}),
            json!({"$setElementOrder/containers": [{"name": "a"}], "containers": [{"name": "a"}]}),
            json!({"containers": [{"name": "a"}]}),
        ),
        (json!({}), json!({"$setElementOrder/containers": [{"name": "a"}]}), json!({})),
        // Field names in another case find their schema.
        (
            json!({"CONTAINERS": [{"name": "a"}]}),
            json!({"CONTAINERS": [{"name": "b"}]}),
            json!({"CONTAINERS": [{"name": "b"}, {"name": "a"}]}),
        ),
    ];
    for (spec, patch, expected) in rows {
        let text = format!("{spec} {patch}");
        let result = apply(pod_spec(spec), pod_spec(patch), schema("Pod"));
        assert_eq!(result, Ok(pod_spec(expected)), "{text}");
    }
}

#[test]
fn lists_of_scalars_merge_as_sets() {
    let rows = [
        (json!(["a"]), json!({"finalizers": ["b", "a"]}), json!(["b", "a"])),
        (json!(["a", "b"]), json!({"finalizers": ["c"]}), json!(["c", "a", "b"])),
        (json!(["a", "b", "a"]), json!({"finalizers": ["b"]}), json!(["a", "b"])),
        (json!(["a", "b"]), json!({"$deleteFromPrimitiveList/finalizers": ["a", "z"]}), json!(["b"])),
        (
            json!(["b"]),
            json!({"$setElementOrder/finalizers": ["c", "b"], "finalizers": ["c"]}),
            json!(["c", "b"]),
        ),
        (
            json!(["a", "b"]),
            json!({"$deleteFromPrimitiveList/finalizers": ["a"], "$setElementOrder/finalizers": ["b", "a"]}),
            json!(["b"]),
        ),
    ];
    for (original, patch, expected) in rows {
        let text = format!("{original} {patch}");
        let result =
            apply(json!({"metadata": {"finalizers": original}}), json!({"metadata": patch}), schema("Pod"));
        assert_eq!(result, Ok(json!({"metadata": {"finalizers": expected}})), "{text}");
    }
}

#[test]
fn services_tell_ports_apart_by_number_alone() {
    let service = json!({"spec": {"ports": [{"port": 81, "protocol": "TCP", "targetPort": 1}]}});
    let patch = json!({"spec": {"ports": [{"port": 81, "protocol": "UDP"}]}});
    let merged = json!({"spec": {"ports": [{"port": 81, "protocol": "UDP", "targetPort": 1}]}});
    assert_eq!(apply(service, patch, schema("Service")), Ok(merged));
}

#[test]
fn stored_items_have_a_key_even_if_it_is_empty() {
    let stored = json!({"status": {"conditions": [{"status": "True"}]}});
    let patch =
        json!({"status": {"conditions": [{"type": "A", "status": "False"}, {"type": "", "reason": "r"}]}});
    let merged = apply(stored, patch, schema("Node")).unwrap();
    let conditions = merged.items_at("status.conditions");
    let shown =
        conditions.iter().map(|item| [item.str_at("type"), item.str_at("status"), item.str_at("reason")]);
    assert_eq!(shown.collect::<Vec<_>>(), [["A", "False", ""], ["", "True", "r"]]);
}

#[test]
fn the_whole_object_may_be_replaced() {
    let patch = json!({"$patch": "replace", "data": {"k": "v"}});
    let merged = json!({"data": {"k": "v"}});
    assert_eq!(apply(json!({"data": {"a": "b"}}), patch, schema("ConfigMap")), Ok(merged));
}

#[test]
fn mistakes_say_what_is_wrong() {
    let original = json!({
        "nodeSelector": {"a": "1"},
        "containers": [{"name": "a"}],
        "volumes": [{"name": "v"}],
        "securityContext": {"supplementalGroups": [1]},
        "overhead": {"cpu": "1"},
    });
    let unknown = |message: &str| PatchError::Unknown(message.to_owned());
    let rows = [
        (
            json!({"nodeSelector": {"$patch": "shuffle", "b": 1}}),
            unknown("unknown patch type: shuffle in map: map[$patch:shuffle b:1]"),
        ),
        (
            json!({"nodeSelector": {"$patch": "merge"}}),
            unknown("unknown patch type: merge in map: map[$patch:merge]"),
        ),
        (
            json!({"nodeSelector": {"$patch": 7}}),
            unknown("unknown patch type: %!s(int64=7) in map: map[$patch:7]"),
        ),
        (
            json!({"nodeSelector": {"$patch": [1, {"a": "x", "b": null}]}}),
            unknown(
                "unknown patch type: [%!s(int64=1) map[a:x b:%!s(<nil>)]] in map: map[$patch:[1 map[a:x b:<nil>]]]",
            ),
        ),
        (
            json!({"containers": [{"image": "x"}]}),
            unknown("map: map[image:x] does not contain declared merge key: name"),
        ),
        (
            json!({"containers": [{"image": "x", "$patch": "delete"}]}),
            unknown("map: map[$patch:delete image:x] does not contain declared merge key: name"),
        ),
        (
            json!({"containers": [{"name": "x", "$patch": "merge"}]}),
            unknown("merging lists cannot yet be specified in the patch"),
        ),
        (
            json!({"containers": ["x"]}),
            unknown("list element types are not identical: [[map[name:a resources:map[]]] [x]]"),
        ),
        (
            json!({"$setElementOrder/containers": [{"name": "a"}], "containers": [{"name": "b"}]}),
            unknown(
                "The order in patch list:\n[map[name:b]]\n doesn't match $setElementOrder list:\n[map[name:a]]\n",
            ),
        ),
        (
            json!({
                "$setElementOrder/containers": [{"name": "a"}],
                "containers": [{"name": "a"}, {"$patch": "replace"}],
            }),
            unknown(
                "The order in patch list:\n[map[name:a] map[$patch:replace]]\n doesn't match $setElementOrder list:\n[map[name:a]]\n",
            ),
        ),
        (
            json!({"$setElementOrder/containers": [{"name": "b"}, ["x"]]}),
            unknown("value for key 1 is not a map"),
        ),
        (
            json!({"$setElementOrder/containers": [{"name": "a"}, ["x"]]}),
            unknown("expected a map[string]interface {}, but received a []interface {}"),
        ),
        (
            json!({"$setElementOrder/containers": "a"}),
            unknown("expected a []interface {}, but received a string"),
        ),
        (
            json!({"$setElementOrder/nonsense": ["a"]}),
            unknown("unable to find api field in struct PodSpec for the json field \"nonsense\""),
        ),
        (
            json!({"$setElementOrder": ["a"]}),
            PatchError::BadRequest("invalid patch format of setElementOrder list".to_owned()),
        ),
        (
            json!({"$deleteFromPrimitiveList": ["a"]}),
            PatchError::BadRequest("invalid patch format of primitive list".to_owned()),
        ),
        (
            json!({"volumes": [{"name": "v", "$retainKeys": ["name"], "emptyDir": {}}]}),
            PatchError::BadRequest("invalid patch format of retainKeys".to_owned()),
        ),
        (
            json!({"volumes": [{"name": "v", "$retainKeys": "name"}]}),
            PatchError::BadRequest("invalid patch format of retainKeys".to_owned()),
        ),
    ];
    for (patch, error) in rows {
        let text = patch.to_string();
        let result = apply(pod_spec(original.clone()), pod_spec(patch), schema("Pod"));
        assert_eq!(result, Err(error), "{text}");
    }
    assert_eq!(
        apply(json!({"data": {"a": {}}}), json!({"data": {"a": {"b": 1}}}), schema("ConfigMap")),
        Err(unknown("merging an object in json but data type is not struct, instead is: map"))
    );
}

/// Repeated merges into one item cost the size of the item's lists, each time.
#[test]
fn merging_into_one_item_is_bounded() {
    let pod = schema("Pod");
    let patch = |count: usize| {
        let item = |index| json!({"name": "c", "env": [{"name": format!("e{index}")}]});
        json!({"spec": {"containers": (0..count).map(item).collect::<Vec<_>>()}})
    };
    let object = json!({"spec": {"containers": [{"name": "c"}]}});
    let merged = apply(object.clone(), patch(500), pod).unwrap();
    assert_eq!(merged.pointer("/spec/containers/0/env").and_then(Value::as_array).map(Vec::len), Some(500));
    assert!(matches!(apply(object, patch(5000), pod), Err(PatchError::TooLarge(_))));
}

#[test]
fn ordering_the_same_list_over_and_over_is_bounded() {
    let pod = schema("Pod");
    let env: Vec<Value> = (0..5000).map(|number| json!({"name": format!("e{number}")})).collect();
    let object = json!({"spec": {"containers": [{"name": "c", "env": env}]}});
    let order = |times: usize| {
        let item = json!({"name": "c", "$setElementOrder/env": [{"name": "e1"}]});
        json!({"spec": {"containers": vec![item; times]}})
    };
    assert!(apply(object.clone(), order(2), pod).is_ok());
    assert!(matches!(apply(object, order(5000), pod), Err(PatchError::TooLarge(_))));
}

#[test]
fn the_used_patch_lacks_the_nulls_of_inserted_values() {
    let object = json!({"spec": {"containers": [{"name": "a"}], "nodeSelector": {"a": "1"}}});
    let check = |patch: Value, expected: Value| {
        assert_eq!(used_patch(&json!({"spec": patch}), &object, schema("Pod")), json!({"spec": expected}));
    };
    check(json!({"volumes": [{"name": null, "b": 1}, "x"]}), json!({"volumes": [{"b": 1}, "x"]}));
    check(json!({"containers": [{"name": null}]}), json!({"containers": [{"name": null}]}));
    check(json!({"nodeSelector": {"a": null}}), json!({"nodeSelector": {"a": null}}));
    check(json!({"nodeSelector": {"$retainKeys": ["a"], "a": "2"}}), json!({"nodeSelector": {"a": "2"}}));
    check(json!({"$setElementOrder/volumes": [], "volumes": []}), json!({}));
    check(json!({"$patch": "replace", "nodeName": "a"}), json!({"nodeName": "a"}));
    check(json!({"$patch": "delete", "nodeName": "a"}), json!({"$patch": "delete", "nodeName": "a"}));
    let resources = |resources: Value| json!({"containers": [{"name": "a", "resources": resources}]});
    check(resources(json!({"limits": null, "$retainKeys": []})), resources(json!({"limits": null})));
    check(
        json!({"affinity": {"nodeAffinity": {"$patch": "delete"}, "podAffinity": null}}),
        json!({"affinity": {}}),
    );
}
