//! Property tests for sets of fields and for configurations.

use super::{
    FieldSet,
    atom::{Shape, Trees},
    compare::{Comparison, compare},
    created::compare_created,
    extract::field_set,
    reconcile::reconcile,
    tests::{apply, config_maps, pods},
    validate::{fits_object, validate_object},
};
use crate::{Map, Text, Value, codec::json};
use pintle_schema::{Schema, SchemaRef, Type};
use pintle_tree::json;
use proptest::{collection::btree_map, collection::vec, prelude::*, sample::subsequence};
use std::collections::{BTreeMap, BTreeSet};

fn elements() -> impl Strategy<Value = String> {
    prop_oneof![
        "f:[abc]",
        "k:\\{\"name\":\"[ab]\"\\}",
        (0..12u8).prop_map(|port| format!("k:{{\"port\":{port},\"protocol\":\"TCP\"}}")),
        "v:\"[ab]\"",
        (0..12u8).prop_map(|number| format!("v:{number}")),
        (0..3u8).prop_map(|index| format!("i:{index}")),
    ]
}

fn paths() -> impl Strategy<Value = BTreeSet<Vec<String>>> {
    vec(vec(elements(), 1..4), 0..8).prop_map(|paths| paths.into_iter().collect())
}

/// Builds a set from its definition: each path ends in a member.
fn set_of(paths: &BTreeSet<Vec<String>>) -> FieldSet {
    let mut root = Map::new();
    for path in paths {
        let mut node = &mut root;
        for element in path {
            node = node.entry(element.clone()).or_insert_with(|| json!({})).as_object_mut().unwrap();
        }
        node.insert(".", json!({}));
    }
    FieldSet::from_fields_v1(&Value::Object(root)).unwrap()
}

/// The candidate paths that are in the set.
fn paths_of(set: &FieldSet, candidates: &BTreeSet<Vec<String>>) -> BTreeSet<Vec<String>> {
    let has = |path: &Vec<String>| set.has(&path.iter().map(String::as_str).collect::<Vec<_>>());
    candidates.iter().filter(|path| has(path)).cloned().collect()
}

/// A configuration of a pod, with parts of different ownership.
fn pod_configs() -> impl Strategy<Value = Value> {
    let env = btree_map("[AB]", prop_oneof!["[xy]".prop_map(Value::from), Just(Value::Null)], 0..3);
    let ports = subsequence(vec![80, 443, 9000], 0..=3);
    let container = (env, ports, proptest::option::of("[ij]"), proptest::option::of(any::<bool>()));
    let containers = btree_map("[cd]", container, 0..3);
    let labels = btree_map("[lm]", "[xy]", 0..3);
    let finalizers = subsequence(vec!["a.b/c", "a.b/d", "a.b/e"], 0..=3);
    let tolerations = proptest::option::of(vec("[kl]", 0..2));
    (containers, labels, finalizers, tolerations).prop_map(|(containers, labels, finalizers, tolerations)| {
        let containers: Vec<Value> = containers
            .into_iter()
            .map(|(name, (env, ports, image, tty))| {
                let env: Vec<Value> =
                    env.into_iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
                let ports: Vec<Value> =
                    ports.into_iter().map(|port| json!({"containerPort": port})).collect();
                let mut container = json!({"name": name, "env": env, "ports": ports});
                if let Some(image) = image {
                    container["image"] = json!(image);
                }
                if let Some(tty) = tty {
                    container["tty"] = json!(tty);
                }
                container
            })
            .collect();
        let mut spec = json!({"containers": containers});
        if let Some(keys) = tolerations {
            spec["tolerations"] = keys.into_iter().map(|key| json!({"key": key})).collect();
        }
        let metadata = json!({"name": "p", "labels": labels, "finalizers": finalizers});
        json!({"kind": "Pod", "metadata": metadata, "spec": spec})
    })
}

/// The set of these paths, as a stored object has it.
fn stored(paths: &BTreeSet<Vec<String>>) -> FieldSet {
    FieldSet::stored(set_of(paths).into_fields_v1().as_str().unwrap().into())
}

#[test]
fn a_stored_set_with_needless_escapes_is_the_same_set() {
    let fields = FieldSet::of_fields(["metadata", "labels", "a/b-c"].into_iter());
    for name in ["a/b-c", r"a\/b-c", r"\u0061/b-c"] {
        let text = format!(r#"{{"f:metadata":{{"f:labels":{{"f:{name}":{{}},"f:d":{{}}}}}}}}"#);
        let mut set = FieldSet::stored(text.as_str().into());
        set.difference(&fields);
        let rest = FieldSet::of_fields(["metadata", "labels", "d"].into_iter());
        assert_eq!(set, rest, "{name}");
    }
}

/// The managers and their fields, without times.
fn owners(object: &Value) -> BTreeMap<String, Value> {
    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    entries.iter().map(|entry| (entry["manager"].to_string(), entry["fieldsV1"].clone())).collect()
}

/// An object without `managedFields`.
fn bare(object: &Value) -> Value {
    let mut object = object.clone();
    object["metadata"].as_object_mut().unwrap().remove("managedFields");
    object
}

/// The number of nodes of a tree.
fn nodes(tree: &Value) -> usize {
    match tree {
        Value::Array(items) => 1 + items.iter().map(nodes).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(nodes).sum::<usize>(),
        _ => 1,
    }
}

/// Replaces the `index`th node of a tree, counted from the root as [`nodes`] counts.
fn replace_node(node: &mut Value, index: &mut usize, replacement: &Value) {
    if *index == 0 {
        node.clone_from(replacement);
    }
    *index = index.wrapping_sub(1);
    match node {
        Value::Array(items) => items.iter_mut().for_each(|item| replace_node(item, index, replacement)),
        Value::Object(members) => {
            members.values_mut().for_each(|member| replace_node(member, index, replacement));
        }
        _ => {}
    }
}

/// Values of all types, some of which fit where another was.
fn any_node() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(null)),
        Just(json!(7)),
        Just(json!("x")),
        Just(json!(true)),
        Just(json!([])),
        Just(json!({})),
        Just(json!([{"name": "a"}, {"name": "a"}])),
        Just(json!([{"name": {}}])),
        Just(json!(["a", 1, "a"])),
        Just(json!([null])),
    ]
}

/// A value of a type, with the parts that `chosen` numbers choose.
fn value_of(schema: SchemaRef<'_>, depth: usize, chosen: &mut impl FnMut() -> u32) -> Value {
    let items = |chosen: u32| if depth == 0 { 0 } else { chosen % 3 };
    match schema.ty() {
        Type::Struct => {
            let fields = schema.fields();
            let mut object = Map::new();
            for field in fields {
                if chosen().is_multiple_of(2) && depth > 0 {
                    object.insert(field.name(), value_of(field.ty(), depth - 1, chosen));
                }
            }
            Value::Object(object)
        }
        Type::Map => (0..items(chosen()))
            .map(|at| (Text::from(format!("k{at}")), value_of(schema.value(), depth - 1, chosen)))
            .collect::<Map>()
            .into(),
        Type::List => {
            let count = items(chosen());
            (0..count).map(|_| value_of(schema.item(), depth - 1, chosen)).collect::<Vec<_>>().into()
        }
        Type::Bool => json!(chosen().is_multiple_of(2)),
        Type::Int32 | Type::Int64 | Type::Float64 | Type::IntOrString => json!(chosen() % 3),
        _ => ["", "0", "a", "b"].map(Value::from)[chosen() as usize % 4].clone(),
    }
}

/// The fields that both ways of comparing an object with nothing find.
fn created(new: &Value, schema: SchemaRef<'_>) -> [(Value, bool); 2] {
    let skip = |name: &str| name == "status";
    [compare(&json!({}), new, schema, skip), compare_created(new, schema, skip)].map(|comparison| {
        let lacks_keys = comparison.lacks_keys;
        let (changed, removed): (FieldSet, FieldSet) = Comparison::into_changed_and_removed(comparison);
        assert!(removed.is_empty(), "{removed:?}");
        (changed.into_fields_v1(), lacks_keys)
    })
}

proptest! {
    #[test]
    fn a_created_object_is_compared_as_any_other(
        config in pod_configs(),
        index in any::<prop::sample::Index>(),
        replacement in any_node(),
        numbers in vec(any::<u32>(), 64),
    ) {
        let mut pod = config.clone();
        pod["metadata"]["labels"]["é<"] = json!("x");
        // A tree without an object where Go always has one is not canonical.
        let mut index = 1 + index.index(nodes(&pod["spec"]) - 1);
        replace_node(&mut pod["spec"], &mut index, &replacement);
        let [one, other] = created(&pod, pods());
        prop_assert_eq!(one, other, "{}", pod);
        let mut at = 0;
        let mut chosen = || {
            at += 1;
            numbers[at % numbers.len()].wrapping_mul(at as u32 | 1) >> 7
        };
        let kinds: Vec<_> = Schema::builtin().kinds().collect();
        for _ in 0..4 {
            let schema = kinds[chosen() as usize % kinds.len()].schema;
            let new = value_of(schema, 6, &mut chosen);
            let [one, other] = created(&new, schema);
            prop_assert_eq!(one, other, "{}", new);
        }
    }

    #[test]
    fn an_object_fits_if_its_validation_finds_nothing(
        config in pod_configs(),
        index in any::<prop::sample::Index>(),
        replacement in any_node(),
    ) {
        let mut pod = json!({"kind": "Pod", "spec": config["spec"]});
        let mut index = index.index(nodes(&pod["spec"]));
        replace_node(&mut pod["spec"], &mut index, &replacement);
        let shape = Shape::of(pods());
        prop_assert_eq!(fits_object(&pod, shape), validate_object(&pod, shape).is_empty(), "{}", pod);
    }

    #[test]
    fn sets_are_sets(a in paths(), b in paths()) {
        for (left, right) in [(set_of(&a), set_of(&b)), (stored(&a), stored(&b))] {
            let all: BTreeSet<_> = a.union(&b).cloned().collect();
            prop_assert_eq!(paths_of(&left, &all), a.clone());
            let mut union = left.clone();
            union.union(&right);
            prop_assert_eq!(paths_of(&union, &all), all.clone());
            prop_assert_eq!(&union, &set_of(&all));
            let mut appended = left.clone();
            appended.append(right.clone());
            prop_assert_eq!(&appended, &union);
            let mut whole = stored(&all);
            whole.append(left.clone());
            prop_assert_eq!(&whole, &union);
            prop_assert!(all.is_empty() || whole.stored_text().is_some(), "{:?} has {:?}", all, a);
            let mut difference = left.clone();
            difference.difference(&right);
            prop_assert_eq!(&difference, &set_of(&a.difference(&b).cloned().collect()));
            prop_assert_eq!(&left.intersection(&right), &set_of(&a.intersection(&b).cloned().collect()));
            let mut rest = left.clone();
            rest.recursive_difference(&right);
            let below = |path: &&Vec<String>| !b.iter().any(|other| path.starts_with(other));
            prop_assert_eq!(&rest, &set_of(&a.iter().filter(below).cloned().collect()));
            prop_assert_eq!(union.len(), all.len());
            prop_assert_eq!(union.paths().len(), all.len());
        }
    }

    #[test]
    fn sets_survive_their_encoding(paths in paths()) {
        for set in [set_of(&paths), stored(&paths)] {
            let written = set.clone().into_fields_v1();
            let read: Value = serde_json::from_str(written.as_str().unwrap()).unwrap();
            prop_assert_eq!(&FieldSet::from_fields_v1(&read).unwrap(), &set);
            prop_assert_eq!(&FieldSet::from_fields_v1(&written).unwrap(), &set);
        }
    }

    #[test]
    fn what_has_not_changed_needs_no_reconciling(config in pod_configs()) {
        let set = field_set(&config, Shape::of(pods()), Trees::Written);
        let mut reconciled = set.clone();
        reconcile(&mut reconciled, Shape::of(pods()));
        prop_assert_eq!(reconciled, set);
    }

    #[test]
    fn applying_twice_is_applying_once(first in pod_configs(), second in pod_configs()) {
        let live = apply(None, "one", first, false).unwrap();
        let once = apply(Some(&live), "two", second.clone(), true).unwrap();
        let twice = apply(Some(&once), "two", second, true).unwrap();
        prop_assert_eq!(bare(&once), bare(&twice));
        prop_assert_eq!(owners(&once), owners(&twice));
    }

    #[test]
    fn applying_what_is_there_is_no_conflict(config in pod_configs()) {
        let live = apply(None, "one", config, false).unwrap();
        let there = json::to_value(&bare(&live), pods());
        let shared = apply(Some(&live), "two", there, false).unwrap();
        prop_assert_eq!(bare(&shared), bare(&live));
        prop_assert_eq!(&owners(&shared)["\"one\""], &owners(&live)["\"one\""]);
    }

    #[test]
    fn disjoint_applies_commute(first in pod_configs(), second in pod_configs()) {
        let (mut first, mut second) = (first, second);
        // Disjoint by the names of containers and labels, and by the other fields.
        for container in second["spec"]["containers"].as_array_mut().unwrap() {
            container["name"] = json!(format!("z{}", container["name"].as_str().unwrap()));
        }
        let labels = second["metadata"]["labels"].as_object().unwrap().clone();
        second["metadata"]["labels"] = labels.into_iter().map(|(name, value)| (format!("z{name}"), value)).collect();
        second["metadata"].as_object_mut().unwrap().remove("finalizers");
        second["spec"].as_object_mut().unwrap().remove("tolerations");
        // A manager that sets an empty map owns it as a whole.
        for config in [&mut first, &mut second] {
            config["metadata"].as_object_mut().unwrap().retain(|_, value| *value != json!({}));
            // The same holds for an empty list that is always written.
            config["spec"].as_object_mut().unwrap().retain(|name, value| name != "containers" || *value != json!([]));
        }
        let base = apply(None, "base", json!({"kind": "Pod", "metadata": {"name": "p"}}), false).unwrap();
        let in_turn = |configs: [(&str, &Value); 2]| {
            configs.into_iter().fold(base.clone(), |live, (name, config)| {
                apply(Some(&live), name, config.clone(), false).unwrap()
            })
        };
        let (ab, ba) = (in_turn([("a", &first), ("b", &second)]), in_turn([("b", &second), ("a", &first)]));
        prop_assert_eq!(owners(&ab), owners(&ba));
        let sorted = |object: &Value| {
            let mut object = bare(object);
            if let Some(containers) = object["spec"]["containers"].as_array_mut() {
                containers.sort_by_key(|container| container["name"].to_string());
            }
            object
        };
        prop_assert_eq!(sorted(&ab), sorted(&ba));
    }

    #[test]
    fn all_that_was_set_is_owned(first in pod_configs(), second in pod_configs()) {
        let live = apply(None, "one", first, false).unwrap();
        let live = apply(Some(&live), "two", second.clone(), true).unwrap();
        let owned = FieldSet::from_fields_v1(&owners(&live)["\"two\""]).unwrap();
        let mut set = field_set(&second, Shape::of(pods()), Trees::Written);
        for name in [&["kind"][..], &["apiVersion"], &["metadata", "name"]] {
            set.difference(&FieldSet::of_fields(name.iter().copied()));
        }
        set.difference(&owned);
        prop_assert!(set.is_empty(), "{set:?}");
    }

    #[test]
    fn giving_all_up_takes_all_away(config in btree_map("[a-f]", "[xy]", 0..5)) {
        let map = |data: &BTreeMap<String, String>| json!({"kind": "ConfigMap", "metadata": {"name": "a"}, "data": data});
        let live = apply(None, "one", map(&config), false).unwrap();
        let empty = apply(Some(&live), "one", json!({"kind": "ConfigMap", "metadata": {"name": "a"}}), false).unwrap();
        prop_assert_eq!(owners(&empty), BTreeMap::new());
        prop_assert_eq!(json::encode(&bare(&empty), config_maps()), br#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}}"#);
    }
}
