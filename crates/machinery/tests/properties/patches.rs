use pintle_machinery::options::FieldValidation;
use pintle_machinery::patch::{json_patch, merge_patch, strategic};
use pintle_machinery::{Value, json};
use pintle_schema::{Schema, SchemaRef};
use proptest::prelude::*;

fn pod() -> SchemaRef<'static> {
    Schema::builtin().by_kind("", "v1", "Pod").unwrap()
}

/// Any JSON, with the names that patches act on.
fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3_i64).prop_map(Value::from),
        prop::sample::select(vec!["a", "b", "delete", "replace", "merge"]).prop_map(Value::from),
    ];
    let name = prop::sample::select(vec![
        "a",
        "b",
        "name",
        "metadata",
        "labels",
        "finalizers",
        "spec",
        "containers",
        "env",
        "ports",
        "containerPort",
        "volumes",
        "tolerations",
        "nodeSelector",
        "$patch",
        "$retainKeys",
        "$setElementOrder/containers",
        "$setElementOrder/finalizers",
        "$deleteFromPrimitiveList/finalizers",
        "$setElementOrder",
    ]);
    leaf.prop_recursive(6, 48, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name.clone(), inner, 0..5).prop_map(|members| {
                Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
            }),
        ]
    })
}

fn operations() -> impl Strategy<Value = Value> {
    let path = prop::sample::select(vec![
        "",
        "/",
        "/a",
        "/a/0",
        "/a/-1",
        "/a/-",
        "/b/name",
        "/spec/containers/0",
        "a",
        "/a~1b",
    ]);
    let op = prop::sample::select(vec!["add", "remove", "replace", "move", "copy", "test", "shuffle"]);
    let operation = (op, path.clone(), path, tree())
        .prop_map(|(op, path, from, value)| json!({"op": op, "path": path, "from": from, "value": value}));
    prop::collection::vec(operation, 0..6).prop_map(Value::from)
}

/// Some of five containers, with an image or without.
fn containers() -> impl Strategy<Value = Vec<Value>> {
    let names = prop::sample::subsequence(vec!["a", "b", "c", "d", "e"], 0..=5).prop_shuffle();
    (names, any::<bool>()).prop_map(|(names, image)| {
        names
            .into_iter()
            .map(|name| if image { json!({"name": name, "image": name}) } else { json!({"name": name}) })
            .collect()
    })
}

fn names(containers: &Value) -> Vec<&str> {
    containers.as_array().unwrap().iter().map(|container| container["name"].as_str().unwrap()).collect()
}

/// Whether the common names of both lists have the same order.
fn in_order_of(list: &[&str], order: &[&str]) -> bool {
    let common: Vec<&&str> = list.iter().filter(|name| order.contains(name)).collect();
    let expected: Vec<&&str> = order.iter().filter(|name| list.contains(name)).collect();
    common == expected
}

proptest! {
    #[test]
    fn patches_apply_or_say_why_not(document in tree(), patch in tree(), operations in operations()) {
        for validation in [FieldValidation::Ignore, FieldValidation::Strict] {
            let _ = json_patch::apply(document.clone(), &operations, validation);
            let _ = json_patch::apply(document.clone(), &patch, validation);
            let _ = merge_patch::apply(document.clone(), patch.clone(), validation);
        }
        let _ = strategic::apply(document, patch, pod());
    }

    #[test]
    fn an_empty_patch_changes_nothing(document in tree()) {
        prop_assume!(document.is_object());
        let empty = || json!({});
        prop_assert_eq!(merge_patch::apply(document.clone(), empty(), FieldValidation::Warn), Ok(document.clone()));
        prop_assert_eq!(strategic::apply(document.clone(), empty(), pod()), Ok(document.clone()));
        prop_assert_eq!(json_patch::apply(document.clone(), &json!([]), FieldValidation::Warn), Ok(document));
    }

    #[test]
    fn a_test_of_the_whole_document_holds(document in tree()) {
        prop_assume!(document.is_object() || document.is_array());
        let test = json!([{"op": "test", "path": "", "value": document}]);
        prop_assert_eq!(json_patch::apply(document.clone(), &test, FieldValidation::Warn), Ok(document));
    }

    #[test]
    fn lists_merge_by_their_key(stored in containers(), patch in containers()) {
        let object = json!({"spec": {"containers": stored}});
        let patch_object = json!({"spec": {"containers": patch}});
        let merged = strategic::apply(object.clone(), patch_object.clone(), pod()).unwrap();
        let merged_names = names(&merged["spec"]["containers"]);
        let (stored_names, patch_names) = (names(&object["spec"]["containers"]), names(&patch_object["spec"]["containers"]));
        // Each name occurs once, none is lost or invented.
        let mut expected: Vec<&str> = stored_names.iter().chain(&patch_names).copied().collect();
        expected.sort_unstable();
        expected.dedup();
        let mut sorted = merged_names.clone();
        sorted.sort_unstable();
        prop_assert_eq!(sorted, expected);
        // The patch's items have the patch's order, the others that of the stored list.
        prop_assert!(in_order_of(&merged_names, &patch_names));
        let rest: Vec<&str> = merged_names.iter().filter(|name| !patch_names.contains(name)).copied().collect();
        prop_assert!(in_order_of(&rest, &stored_names));
        // A second application changes nothing.
        prop_assert_eq!(strategic::apply(merged.clone(), patch_object, pod()), Ok(merged));
    }

    #[test]
    fn an_element_order_orders(stored in containers(), order in containers()) {
        prop_assume!(!stored.is_empty());
        let object = json!({"spec": {"containers": stored}});
        let order_object = json!({"spec": {"$setElementOrder/containers": order}});
        let merged = strategic::apply(object.clone(), order_object, pod()).unwrap();
        let merged_names = names(&merged["spec"]["containers"]);
        let order = Value::from(order);
        prop_assert!(in_order_of(&merged_names, &names(&order)));
        prop_assert_eq!(merged_names.len(), names(&object["spec"]["containers"]).len());
    }

    #[test]
    fn deletes_and_replaces_are_exact(stored in containers(), patch in containers()) {
        let object = json!({"spec": {"containers": stored}});
        let deletes: Vec<Value> =
            patch.iter().map(|item| json!({"name": item["name"], "$patch": "delete"})).collect();
        let merged = strategic::apply(object.clone(), json!({"spec": {"containers": deletes}}), pod()).unwrap();
        let left: Vec<&Value> =
            stored.iter().filter(|item| !patch.iter().any(|other| other["name"] == item["name"])).collect();
        prop_assert_eq!(&merged["spec"]["containers"], &json!(left));
        let mut replace = vec![json!({"$patch": "replace"})];
        replace.extend(patch.iter().cloned());
        let merged = strategic::apply(object, json!({"spec": {"containers": replace}}), pod()).unwrap();
        prop_assert_eq!(&merged["spec"]["containers"], &json!(patch));
    }
}
