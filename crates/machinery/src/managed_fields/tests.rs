use super::*;
use crate::{
    Map, Value, ValueExt,
    codec::{EmptyField, json},
};
use jiff::Timestamp;
use pintle_schema::{
    FieldSpec, ListType, MapType, Schema, SchemaBuilder, SchemaRef, StructSpec, Structural, Type,
};
use pintle_tree::json;

fn schema(name: &str) -> SchemaRef<'static> {
    Schema::builtin().by_type_name(name).unwrap()
}

pub(super) fn pods() -> SchemaRef<'static> {
    schema("k8s.io/api/core/v1.Pod")
}

pub(super) fn config_maps() -> SchemaRef<'static> {
    schema("k8s.io/api/core/v1.ConfigMap")
}

fn manager<'a>(name: &'a str, schema: SchemaRef<'a>) -> FieldManager<'a> {
    FieldManager {
        manager: name,
        kind: schema.name(),
        api_version: "v1",
        subresource: "",
        now: Timestamp::UNIX_EPOCH,
        schema,
        reset_fields: &["status"],
        empty_fields: &[],
        versions: &OneVersion,
    }
}

fn canonical(value: Value, schema: SchemaRef<'_>) -> Value {
    json::from_value(&value, schema).unwrap().value
}

fn owners(object: &Value) -> Vec<(String, Value)> {
    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    entries
        .into_iter()
        .map(|entry| {
            let name =
                format!("{}/{}", entry["manager"].as_str().unwrap(), entry["operation"].as_str().unwrap());
            (name, serde_json::from_str(entry["fieldsV1"].as_str().unwrap()).unwrap())
        })
        .collect()
}

#[test]
fn a_created_pod_belongs_to_its_creator() {
    let mut pod = canonical(
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"a": "b"}}, "spec": {
            "containers": [{"name": "c", "image": "i", "args": ["x"],
                "ports": [{"containerPort": 80, "protocol": "TCP"}]}],
            "securityContext": {}, "tolerations": [{"key": "k"}]}, "status": {"phase": "Pending"}}),
        pods(),
    );
    manager("me", pods()).update(None, &mut pod);
    let want = json!({
        "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
        "f:spec": {
            "f:containers": {"k:{\"name\":\"c\"}": {".": {}, "f:args": {}, "f:image": {}, "f:name": {},
                "f:ports": {".": {}, "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {
                    ".": {}, "f:containerPort": {}, "f:protocol": {}}},
                "f:resources": {}}},
            "f:securityContext": {},
            "f:tolerations": {},
        },
    });
    assert_eq!(owners(&pod), [("me/Update".to_owned(), want)]);
}

#[test]
fn an_empty_list_in_an_item_takes_over_the_list_of_the_item() {
    let body = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}],
        "topologySpreadConstraints": [], "volumes": [], "tolerations": [], "affinity": {"podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "t", "namespaces": []}]}}}});
    let decoded = json::from_value(&body, pods()).unwrap();
    let mut pod = decoded.value.clone();
    manager("first", pods()).update(None, &mut pod);
    let check = |empty_fields: &[EmptyField], second: Option<Value>| {
        let mut new = pod.clone();
        FieldManager { empty_fields, ..manager("second", pods()) }.update(Some(&pod), &mut new);
        let owner = owners(&new).into_iter().find(|(name, _)| name == "second/Update");
        assert_eq!(owner.map(|(_, fields)| fields), second);
        assert_eq!(new["spec"], pod["spec"]);
    };
    check(&[], None);
    let terms = json!({"f:requiredDuringSchedulingIgnoredDuringExecution": {}});
    let owned = json!({"f:spec": {"f:affinity": {"f:podAffinity": terms}}});
    check(&decoded.empty_fields, Some(owned));
}

#[test]
fn of_two_entries_of_one_manager_the_last_one_stays() {
    let entry = |time: &str, fields: &str| {
        let mut entry = json!({"manager": "me", "operation": "Update", "apiVersion": "v1", "time": time,
            "fieldsType": "FieldsV1", "fieldsV1": fields});
        if time.is_empty() {
            entry.as_object_mut().unwrap().remove("time");
        }
        entry
    };
    let live = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "x"}, "metadata": {"name": "a",
    "managedFields": [
        entry("", r#"{"f:data":{".":{}}}"#),
        entry("1970-01-01T00:00:00Z", r#"{"f:data":{"f:a":{}}}"#),
    ]}});
    let mut new = live.clone();
    manager("other", config_maps()).update(Some(&live), &mut new);
    assert_eq!(owners(&new), [("me/Update".to_owned(), json!({"f:data": {"f:a": {}}}))]);
}

#[test]
fn changed_fields_move_to_their_writer() {
    let config_map = |data: Value| {
        canonical(
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}),
            config_maps(),
        )
    };
    let mut live = config_map(json!({"k": "v", "l": "w"}));
    manager("one", config_maps()).update(None, &mut live);
    let mut new = config_map(json!({"k": "v2", "m": "x"}));
    manager("two", config_maps()).update(Some(&live), &mut new);
    let want = [
        ("one/Update".to_owned(), json!({"f:data": {}})),
        ("two/Update".to_owned(), json!({"f:data": {"f:k": {}, "f:m": {}}})),
    ];
    assert_eq!(owners(&new), want);
    let mut same = config_map(json!({"k": "v2", "m": "x"}));
    manager("three", config_maps()).update(Some(&new), &mut same);
    assert_eq!(same, new);
    let mut reset = config_map(json!({"k": "v3"}));
    reset["metadata"]["managedFields"] = json!([{}]);
    manager("four", config_maps()).update(Some(&new), &mut reset);
    assert_eq!(owners(&reset), []);
}

#[test]
fn the_oldest_updates_are_merged() {
    let mut live =
        canonical(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}), config_maps());
    manager("m00", config_maps()).update(None, &mut live);
    for number in 0..14 {
        let mut new = live.clone();
        new["data"][format!("k{number:02}")] = json!("v");
        let name = format!("m{number:02}");
        let mut manager = manager(&name, config_maps());
        manager.now = Timestamp::from_second(i64::from(number)).unwrap();
        let tracked = number > 0;
        manager.update(tracked.then_some(&live), &mut new);
        live = new;
    }
    let owners = owners(&live);
    assert_eq!(owners.len(), MAX_UPDATE_MANAGERS);
    let data = json!({"f:data": {".": {}, "f:k00": {}, "f:k01": {}, "f:k02": {}, "f:k03": {}, "f:k04": {}}});
    assert_eq!(owners[0], ("ancient-changes/Update".to_owned(), data));
}

pub(super) fn apply(
    live: Option<&Value>,
    name: &str,
    config: Value,
    force: bool,
) -> Result<Value, crate::Status> {
    let mut config = config;
    config["apiVersion"] = json!("v1");
    let schema = match config["kind"].as_str() {
        Some("Pod") => pods(),
        _ => {
            config["kind"] = json!("ConfigMap");
            config_maps()
        }
    };
    manager(name, schema).apply(live, &config, force).map(|applied| applied.object)
}

#[test]
fn applied_numbers_are_converted_and_empty_lists_told() {
    let pod = |grace: Value| {
        json!({
            "kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"},
            "spec": {"containers": [{"name": "c", "ports": [{"containerPort": grace}], "args": []}]},
        })
    };
    let applied = manager("alice", pods()).apply(None, &pod(json!(99999999999_i64)), false).unwrap();
    assert_eq!(applied.object["spec"]["containers"][0]["ports"][0]["containerPort"], json!(1215752191));
    let empty: Vec<&str> = applied.empty_fields.iter().map(|field| field.path.as_str()).collect();
    assert_eq!(empty, ["spec.containers[0].args"]);
    let error = manager("alice", pods()).apply(None, &pod(json!(1.5)), false).unwrap_err();
    assert!(error.message.ends_with("cannot convert float64 to int32"), "{}", error.message);
}

#[test]
fn the_core_group_may_stand_before_its_version() {
    let config = |version: &str| json!({"kind": "ConfigMap", "apiVersion": version, "metadata": {"name": "a"}, "data": {"k": "v"}});
    let manager = manager("alice", config_maps());
    let applied = manager.apply(None, &config("v1"), false).unwrap().object;
    assert_eq!(manager.apply(None, &config("/v1"), false).unwrap().object, applied);
    assert_eq!(manager.apply(Some(&applied), &config("/v1"), false).unwrap().object, applied);
    for (version, found) in [
        ("v1/", "v1/, Kind=ConfigMap"),
        ("//v1", "/, Kind="),
        ("/", "/, Kind=ConfigMap"),
        ("/v2", "/v2, Kind=ConfigMap"),
    ] {
        let error = manager.apply(None, &config(version), false).unwrap_err();
        assert_eq!(error.message, format!("invalid object type: {found}"));
    }
}

#[test]
fn applying_gives_takes_and_shares() {
    let first = apply(None, "alice", json!({"metadata": {"name": "a"}, "data": {"k": "v", "l": "w"}}), false)
        .unwrap();
    let again =
        apply(Some(&first), "alice", json!({"metadata": {"name": "a"}, "data": {"k": "v", "l": "w"}}), false);
    assert_eq!(again.unwrap(), first);
    let dropped =
        apply(Some(&first), "alice", json!({"metadata": {"name": "a"}, "data": {"k": "v"}}), false).unwrap();
    assert_eq!(dropped["data"], json!({"k": "v"}));
    let shared =
        apply(Some(&dropped), "bob", json!({"metadata": {"name": "a"}, "data": {"k": "v", "m": "b"}}), false)
            .unwrap();
    assert_eq!(owners(&shared).len(), 2);
    let left = apply(Some(&shared), "alice", json!({"metadata": {"name": "a"}}), false).unwrap();
    assert_eq!(left["data"], json!({"k": "v", "m": "b"}));
    assert_eq!(owners(&left).len(), 1);
    let conflict = apply(
        Some(&shared),
        "carol",
        json!({"metadata": {"name": "a"}, "data": {"k": "c", "m": "c"}}),
        false,
    );
    let status = conflict.unwrap_err();
    assert_eq!(
        (status.code, status.message.as_str()),
        (
            409,
            "Apply failed with 3 conflicts: conflicts with \"alice\":\n- .data.k\nconflicts with \"bob\":\n- .data.k\n- .data.m"
        )
    );
    let forced =
        apply(Some(&shared), "carol", json!({"metadata": {"name": "a"}, "data": {"k": "c", "m": "c"}}), true)
            .unwrap();
    assert_eq!(owners(&forced), [("carol/Apply".to_owned(), json!({"f:data": {"f:k": {}, "f:m": {}}}))]);
}

#[test]
fn very_many_conflicts_are_named_in_part() {
    let data = |count: usize, value: &str| -> Map {
        (0..count).map(|number| (format!("{}{number}", "k".repeat(100)), json!(value))).collect()
    };
    let config = |value: &str| json!({"metadata": {"name": "a"}, "data": data(5000, value)});
    let first = apply(None, "alice", config("a"), false).unwrap();
    let status = apply(Some(&first), "bob", config("b"), false).unwrap_err();
    let causes = status.details.unwrap().causes;
    assert_eq!((status.code, causes.len()), (409, 1000));
    assert!(
        status
            .message
            .starts_with("Apply failed with 5000 conflicts: conflicts with \"alice\":\n- .data.kkk")
    );
    assert!(status.message.ends_with("\nand more conflicts") && status.message.len() < 256 * 1024);
    let mut long = config("c");
    long["metadata"]["annotations"] = json!({("k".repeat(200_000)): "a", ("l".repeat(200_000)): "a"});
    let first = apply(None, "alice", long.clone(), false).unwrap();
    for value in long["metadata"]["annotations"].as_object_mut().unwrap().values_mut() {
        *value = json!("b");
    }
    let status = apply(Some(&first), "bob", long, false).unwrap_err();
    assert!(status.message.len() < 512 * 1024, "{}", status.message.len());
}

#[test]
fn lists_with_keys_are_merged_and_pruned_by_item() {
    let pod = |containers: Value| json!({"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": containers}});
    let first =
        apply(None, "a", pod(json!([{"name": "one", "image": "i"}, {"name": "two", "image": "i"}])), false)
            .unwrap();
    let second = apply(
        Some(&first),
        "b",
        pod(json!([{"name": "three", "image": "j"}, {"name": "two", "tty": true}])),
        false,
    )
    .unwrap();
    let names = |pod: &Value| -> Vec<String> {
        pod["spec"]["containers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|c| c["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(&second), ["one", "three", "two"]);
    assert_eq!(second["spec"]["containers"][2], json!({"name": "two", "image": "i", "tty": true}));
    let third = apply(Some(&second), "a", pod(json!([{"name": "one", "image": "i"}])), false).unwrap();
    assert_eq!(names(&third), ["one", "three", "two"]);
    assert_eq!(third["spec"]["containers"][2], json!({"name": "two", "tty": true}));
    let fourth = apply(Some(&third), "b", pod(json!([{"name": "three", "image": "j"}])), false).unwrap();
    assert_eq!(names(&fourth), ["one", "three"]);
}

#[test]
fn what_is_no_configuration_is_refused() {
    for (config, code) in [
        (json!({"kind": "ConfigMap", "metadata": {"name": "a", "managedFields": []}}), 400),
        (json!({"kind": "ConfigMap", "metadata": {"name": "a", "managedFields": [[]]}}), 500),
        (json!({"kind": "ConfigMap", "metadata": {"name": "a"}, "dta": {}}), 500),
        (json!({"kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": [1]}}), 500),
        (
            json!({"kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [{"name": "c"}, {"name": "c"}]}}),
            500,
        ),
    ] {
        assert_eq!(apply(None, "a", config.clone(), false).unwrap_err().code, code, "{config}");
    }
}

/// A kind with a second version of the same fields.
struct TwoVersions(SchemaRef<'static>);

impl VersionConverter for TwoVersions {
    fn schema<'a>(&'a self, version: &str) -> Option<SchemaRef<'a>> {
        (version == "v2").then_some(self.0)
    }

    fn convert<'a>(&'a self, object: &Value, _: &str, _: &str) -> Option<(Value, SchemaRef<'a>)> {
        Some((object.clone(), self.0))
    }
}

#[test]
fn an_object_that_cannot_be_converted_fails_in_the_step_that_converts_it() {
    let versions = TwoVersions(pods());
    let config = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
        "spec": {"terminationGracePeriodSeconds": 1.5}});
    let why = "unable to convert unstructured object to /v1, Kind=Pod: cannot convert float64 to int64";
    let own = "failed to convert new object (/a; /v1, Kind=Pod) to proper version";
    let owned =
        "failed to prune fields: failed add back owned items: failed to convert merged object at version v2";
    let last = "failed to prune fields: failed to convert merged object to last applied version";
    for (entries, step) in [
        (vec![("n", "v1")], own),
        (vec![("n", "v9")], own),
        (vec![("m", "v1"), ("n", "v1")], own),
        (vec![("n", "v1"), ("n", "v2")], "failed to convert new object"),
        (vec![("m", "v1"), ("n", "v2")], owned),
        (vec![("m", "v2"), ("n", "v2")], last),
    ] {
        let written: Vec<Value> = entries
            .iter()
            .enumerate()
            .map(|(at, (name, version))| {
                json!({"manager": name, "operation": if *name == "m" { "Apply" } else { "Update" },
                    "subresource": if at > 0 { "s" } else { "" }, "apiVersion": version, "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:spec": {"f:hostname": {}}}})
            })
            .collect();
        let live = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "managedFields": written},
            "spec": {"hostname": "h"}});
        let manager = FieldManager { versions: &versions, ..manager("m", pods()) };
        let error = manager.apply(Some(&live), &config, false).unwrap_err();
        assert_eq!(error.message, format!("{step}: {why}"), "{entries:?}");
    }
}

#[test]
fn malformed_fields_are_refused() {
    for (fields, fine) in [
        (json!({"f:a": {"f:b": {}}, "z:new": {}}), true),
        (json!({"f:a": {"k:{\"n\":\"x\"}": {".": {}, "f:n": {}}, "v:1": {}, "i:0": {}}}), true),
        (json!({"data": {}}), false),
        (json!({"f:a": 1}), false),
        (json!({"k:{": {}}), false),
        (json!({"k:": {}}), false),
        (json!({"k:1": {}}), false),
        (json!({"v:": {}}), false),
        (json!([]), false),
    ] {
        assert_eq!(FieldSet::from_fields_v1(&fields).is_ok(), fine, "{fields}");
    }
}

#[test]
fn fields_are_read_as_leniently_as_the_reference_reads_them() {
    for (fields, read) in [
        (json!({"f:a": null, "z:new": 1}), r#"{"f:a":{}}"#),
        (json!({"f:a": {".": 1}, "f:b": {".": null, "f:c": {}}}), r#"{"f:a":{},"f:b":{".":{},"f:c":{}}}"#),
        (json!({"f:a": {"z:new": {}}}), r#"{"f:a":{}}"#),
        (json!({"k:{\"n\":1}x": {}, "k:null": {}}), r#"{"k:{}":{},"k:{\"n\":1}":{}}"#),
        (json!({"v:\"\\b\\f\\\\b\\n\"": {}}), r#"{"v:\"\\u0008\\u000c\\\\b\\n\"":{}}"#),
        (json!({"v:1e-7": {}, "v:1.5e-10": {}}), r#"{"v:1.5e-10":{},"v:1e-07":{}}"#),
    ] {
        let set = FieldSet::from_fields_v1(&fields).unwrap();
        assert_eq!(set.into_fields_v1(), json!(read), "{fields}");
    }
}

#[test]
fn an_empty_list_is_owned_where_it_is_not_the_same_as_none() {
    let slices = schema("k8s.io/api/discovery/v1.EndpointSlice");
    let pod = pods();
    let cases = [
        (slices, json!({"endpoints": [], "ports": null}), json!({"f:endpoints": {}})),
        (slices, json!({"endpoints": null, "addressType": "IPv4"}), json!({"f:addressType": {}})),
        (slices, json!({"metadata": {"finalizers": []}, "ports": []}), json!({"f:ports": {}})),
        (pod, json!({"spec": {"containers": []}}), json!({"f:spec": {"f:containers": {}}})),
    ];
    for (schema, sent, owned) in cases {
        let mut new = canonical(sent.clone(), schema);
        manager("me", schema).update(None, &mut new);
        assert_eq!(owners(&new), [("me/Update".to_owned(), owned.clone())], "create: {sent}");
        let live = canonical(
            json!({"metadata": {"uid": "u", "managedFields": new["metadata"]["managedFields"]}}),
            schema,
        );
        let mut again = canonical(sent.clone(), schema);
        manager("you", schema).update(Some(&live), &mut again);
        assert_eq!(owners(&again).last().unwrap(), &("you/Update".to_owned(), owned), "update: {sent}");
    }
}

/// The schema of a custom resource with a set of objects, a map, and metadata.
fn things() -> Schema {
    let mut builder = SchemaBuilder::new();
    let text = builder.scalar(Type::String);
    let map = builder.map(text, MapType::Granular);
    let set = builder.list(map, ListType::Set, &[]);
    let meta = builder.builtin(schema("k8s.io/apimachinery/pkg/apis/meta/v1.ObjectMeta"));
    let root = builder.reserve();
    let field = |name| FieldSpec { name, ..FieldSpec::default() };
    let fields = vec![
        (field("apiVersion"), text),
        (field("kind"), text),
        (field("metadata"), meta),
        (field("set"), set),
        (field("map"), map),
    ];
    builder.set_struct(root, StructSpec { fields, ..StructSpec::default() });
    for id in [root, set, map] {
        builder.set_structural(id, Structural::default());
    }
    builder.finish(root)
}

#[test]
fn the_owner_of_a_map_in_another_version_keeps_it_when_it_becomes_empty() {
    let schema: &'static Schema = Box::leak(Box::new(things()));
    let versions = TwoVersions(schema.root());
    let entry = |name: &str, operation: &str, fields: &str| {
        json!({"manager": name, "operation": operation, "apiVersion": "v2", "fieldsType": "FieldsV1",
            "fieldsV1": fields})
    };
    let live = json!({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a", "labels": {"a": "b"},
    "managedFields": [
        entry("me", "Apply", r#"{"f:metadata":{"f:labels":{"f:a":{}}}}"#),
        entry("other", "Update", r#"{"f:metadata":{"f:labels":{}}}"#),
    ]}});
    let config = json!({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a"}, "map": {"a": "b"}});
    let manager = FieldManager { kind: "Thing", versions: &versions, ..manager("me", schema.root()) };
    let applied = manager.apply(Some(&live), &config, false).unwrap().object;
    let names: Vec<String> = owners(&applied).into_iter().map(|(name, _)| name).collect();
    assert_eq!(
        (names, applied.at("metadata.labels")),
        (vec!["me/Apply".to_owned(), "other/Update".to_owned()], None)
    );
}

#[test]
fn an_object_with_an_item_without_its_key_loses_its_owners() {
    let accounts = schema("k8s.io/api/core/v1.ServiceAccount");
    let mut live = json!({"secrets": [{"name": "a"}]});
    manager("m", accounts).update(None, &mut live);
    assert_eq!(owners(&live).len(), 1);
    for (item, count) in [(json!({"name": "b"}), 2), (json!({}), 0), (json!({"name": ""}), 0)] {
        let mut new = live.clone();
        new["secrets"] = json!([{"name": "a"}, item]);
        manager("n", accounts).update(Some(&live), &mut new);
        assert_eq!(owners(&new).len(), count, "{new}");
    }
}

#[test]
fn an_object_with_an_item_without_its_key_gets_no_owners() {
    let accounts = schema("k8s.io/api/core/v1.ServiceAccount");
    let entry = json!({"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
        "fieldsV1": {"f:automountServiceAccountToken": {}}});
    let live =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}, "secrets": [{}]});
    let mut tracked = live.clone();
    tracked["metadata"]["managedFields"] = json!([entry]);
    let mut new = tracked.clone();
    manager("n", accounts).update(Some(&live), &mut new);
    assert_eq!(owners(&new), []);
    let config = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}});
    for (live, what) in [
        (
            live,
            "failed to create manager for existing fields: failed to convert new object (/a; /v1, Kind=ServiceAccount) to smd typed",
        ),
        (tracked, "failed to create typed live object (/a; /v1, Kind=ServiceAccount)"),
    ] {
        let error = manager("n", accounts).apply(Some(&live), &config, true).unwrap_err();
        assert_eq!(
            error.message,
            format!(
                "{what}: .secrets: element 0: associative list with keys has an element that omits all key fields \
                [\"name\"] (and doesn't have default values for any key fields)"
            ),
        );
    }
}

#[test]
fn an_object_whose_fields_are_unknown_loses_its_owners() {
    let schema = things();
    let manager = || FieldManager { kind: "Thing", ..manager("me", schema.root()) };
    let thing = |kind: &str, fields: Value| {
        let mut thing = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "a"}});
        for (name, value) in fields.as_object().unwrap() {
            thing[name.as_str()] = value.clone();
        }
        thing
    };
    let mut live = thing("Thing", json!({"map": {"a": "b"}}));
    manager().update(None, &mut live);
    assert_eq!(owners(&live).len(), 1);
    let check = |new: Value, is_owned: bool| {
        let mut new = new;
        new["metadata"]["managedFields"] = live["metadata"]["managedFields"].clone();
        manager().update(Some(&live), &mut new);
        assert_eq!(owners(&new).is_empty(), !is_owned, "{new}");
    };
    check(thing("Thing", json!({"map": {"a": "c"}})), true);
    check(thing("Other", json!({"map": {"a": "c"}})), false);
    check(thing("Thing", json!({"map": "text"})), false);
    check(thing("Thing", json!({"set": [{"a": "b"}]})), false);
    // Such an object can be applied to no more.
    let object = thing("Thing", json!({"set": [{"a": "b"}]}));
    let refusal = manager().apply(Some(&object), &thing("Thing", json!({})), false).unwrap_err();
    let expected = "failed to create manager for existing fields: failed to convert new object (/a; /v1, Kind=Thing) to smd \
                    typed: .set: element 0: associative list without keys has an element that's a map type";
    assert_eq!(refusal.message, expected);
}

#[test]
fn a_configuration_is_merged_into_an_object_that_fits_its_type() {
    let schema = things();
    let merge = |object: &Value| merge_configuration(object, json!({"map": {"a": "b"}}), schema.root());
    let refused = |why: &str| {
        Err(ConfigurationError::Refused(format!("failed to convert original object to typed object: {why}")))
    };
    let owned = json!({"metadata": {"managedFields": [{"fieldsV1": "{\"f:map\":{}}"}]}});
    assert!(merge(&owned).is_ok());
    let unknown = json!({"map": {"c": "d"}, "bogus": 1});
    assert_eq!(merge(&unknown), refused(".bogus: field not declared in schema"));
    let wrong = json!({"map": {"c": 5}});
    assert_eq!(merge(&wrong), refused(".map.c: expected string, got &value.valueUnstructured{Value:5}"));
    assert_eq!(merge(&json!({"map": {"c": "d"}})), Ok(json!({"map": {"a": "b", "c": "d"}})));
}
