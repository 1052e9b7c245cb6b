use super::*;
use crate::webhooks::clients::WebhookClients;
use pintle_admission::{Operation, testing::Request};
use pintle_admission_cel::Compiler;
use pintle_machinery::json;

/// Applies the patch of an answer to an object of a kind, which is absent if it is null.
fn patched(
    kind: &str,
    object: &Value,
    patch: &str,
    patch_type: &str,
) -> Result<Option<Patched>, CallFailure> {
    patched_after(false, kind, object, patch, patch_type)
}

/// The same; `is_replaced` tells whether another webhook or a policy has replaced the object.
fn patched_after(
    is_replaced: bool,
    kind: &str,
    object: &Value,
    patch: &str,
    patch_type: &str,
) -> Result<Option<Patched>, CallFailure> {
    let webhook = Webhook::new(
        "c/w/0".to_owned(),
        "c",
        &json!({"name": "w"}),
        &Compiler::new(),
        &WebhookClients::unused(),
    );
    let answer = Answer {
        allowed: true,
        status: Value::Null,
        warnings: Vec::new(),
        audit_annotations: Vec::new(),
        patch: patch.as_bytes().to_vec(),
        patch_type: patch_type.to_owned(),
    };
    let mut request = Request::new(Operation::Create, "", "v1", kind, "ns");
    request.object = object.clone();
    let matched = request.endpoint();
    let json = (!object.is_null()).then(|| object.to_string());
    let json = json.as_ref().map(String::as_bytes);
    request.with(async |request| {
        request.is_replaced = is_replaced;
        apply(&webhook, &answer, request, &matched, json).await
    })
}

#[test]
fn a_patch_changes_the_object() {
    let check = |patch: Value, expected: Value, is_changed: bool| {
        let object = json!({"apiVersion": "v1", "kind": "Thing", "a": 1});
        let found = patched("Thing", &object, &patch.to_string(), JSON_PATCH).unwrap().unwrap();
        assert_eq!((found.object, found.is_changed), (Ok(expected), is_changed), "{patch}");
        assert_eq!(found.patch, patch.to_string().into_bytes());
    };
    let thing = json!({"apiVersion": "v1", "kind": "Thing", "a": 1});
    let mut larger = thing.clone();
    larger.set("b", 2);
    check(json!([{"op": "add", "path": "/b", "value": 2}]), larger, true);
    check(json!([{"op": "replace", "path": "/a", "value": 1}]), thing, false);
    for nothing in ["", "null", "[]"] {
        assert!(patched("Thing", &json!({}), nothing, JSON_PATCH).unwrap().is_none(), "{nothing}");
    }
}

#[test]
fn the_first_replacement_rounds_the_times_of_new_managed_fields() {
    let check = |kind: &str, is_replaced: bool, expected: bool| {
        let entry = json!({"manager": "m", "operation": "Update", "time": "1970-01-01T00:00:00Z"});
        let object = json!({"apiVersion": "v1", "kind": kind, "metadata": {"managedFields": [entry]}});
        let patch = json!([{"op": "test", "path": "/kind", "value": kind}]);
        let found = patched_after(is_replaced, kind, &object, &patch.to_string(), JSON_PATCH);
        assert_eq!(found.unwrap().unwrap().is_changed, expected, "{kind} {is_replaced}");
    };
    check("ConfigMap", false, true);
    check("ConfigMap", true, false);
    check("Thing", false, false);
}

#[test]
fn patches_that_cannot_be_applied_fail() {
    /// The reason, and whether the failure policy decides.
    fn failure(found: Result<Option<Patched>, CallFailure>) -> (String, bool) {
        match found {
            Err(CallFailure::Calling { reason, .. }) => (reason, true),
            Err(CallFailure::Internal(status) | CallFailure::Rejected(status)) => (status.message, false),
            Ok(patched) => panic!("{patched:?}"),
        }
    }
    let check = |kind: &str, object: Value, patch: &str, expected: &str, is_ignorable: bool| {
        let found = failure(patched(kind, &object, patch, JSON_PATCH));
        assert!(found.0.contains(expected) && found.1 == is_ignorable, "{patch}: {found:?}");
    };
    // A later patch may give the object its kind back.
    let check_later = |kind: &str, object: Value, patch: &str, expected: &str, seen: Value| {
        let found = patched(kind, &object, patch, JSON_PATCH).unwrap().unwrap();
        assert_eq!(found.object.map_err(|status| status.message), Err(expected.to_owned()), "{patch}");
        assert_eq!((found.seen, found.is_changed), (seen, true), "{patch}");
    };
    let undecodable = "received undecodable patch in webhook response: ";
    check("Thing", json!({}), "nonsense", undecodable, true);
    check("Thing", json!({}), "{}", undecodable, true);
    let remove = r#"[{"op": "remove", "path": "/none"}]"#;
    check("Thing", json!({}), remove, "Internal error occurred", false);
    let nothing =
        "admission webhook \"w\" attempted to modify the object, which is not supported for this operation";
    check("Thing", Value::Null, remove, nothing, false);
    // The kind of a built-in object stays.
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    let kind = |kind: &str| format!(r#"[{{"op": "replace", "path": "/kind", "value": "{kind}"}}]"#);
    let unknown = "converting (v1.Secret) to (core.ConfigMap): unknown conversion";
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {}});
    check_later("ConfigMap", map.clone(), &kind("Secret"), unknown, secret);
    check(
        "ConfigMap",
        map.clone(),
        &kind("Nope"),
        "no kind \"Nope\" is registered for version \"v1\"",
        false,
    );
    assert!(patched("ConfigMap", &map, &kind("ConfigMap"), JSON_PATCH).is_ok());

    // A custom resource has no kind but the one that it names.
    let thing = json!({"apiVersion": "v1", "kind": "Thing"});
    let without_kind = r#"[{"op": "remove", "path": "/kind"}]"#;
    check(
        "Thing",
        thing.clone(),
        without_kind,
        r#"Object 'Kind' is missing in '{"apiVersion":"v1"}'"#,
        false,
    );
    let number = r#"[{"op": "replace", "path": "/kind", "value": 5}]"#;
    check("Thing", thing.clone(), number, "couldn't get version/kind; json parse error", false);
    let version =
        |version: &str| format!(r#"[{{"op": "replace", "path": "/apiVersion", "value": "{version}"}}]"#);
    let other = r#"a.io/v1, Kind=Thing is unstructured and is not suitable for converting to "v1""#;
    let seen = json!({"apiVersion": "a.io/v1", "kind": "Thing"});
    check_later("Thing", thing.clone(), &version("a.io/v1"), other, seen);
    let none = "request to convert CR from an invalid group/version: v9";
    check_later("Thing", thing, &version("v9"), none, json!({"apiVersion": "v9", "kind": "Thing"}));

    let found = failure(patched("Thing", &json!({}), remove, "MergePatch"));
    assert_eq!(found, ("unsupported patch type \"MergePatch\"".to_owned(), true));
}

#[test]
fn a_built_in_object_keeps_the_kind_that_a_patch_removes() {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}});
    for operation in [
        json!({"op": "remove", "path": "/kind"}),
        json!({"op": "remove", "path": "/apiVersion"}),
        json!({"op": "replace", "path": "/apiVersion", "value": "/"}),
    ] {
        let found = patched("ConfigMap", &object, &json!([operation]).to_string(), JSON_PATCH);
        let found = found.unwrap().unwrap();
        assert_eq!(found.object, Ok(object.clone()), "{operation}");
        assert!(found.is_changed, "{operation}");
        // The next webhook sees what the patch has left.
        assert_eq!(
            found.seen.get(operation.str_at("path").trim_start_matches('/')).is_none(),
            operation["op"] == "remove"
        );
    }
}

#[test]
fn members_of_custom_resources_may_be_empty() {
    let check = |patch: Value, is_changed: bool| {
        let object = json!({"apiVersion": "v1", "kind": "Thing", "a": {}});
        let found = patched("Thing", &object, &json!([patch]).to_string(), JSON_PATCH).unwrap().unwrap();
        assert_eq!(found.is_changed, is_changed, "{patch}");
    };
    check(json!({"op": "remove", "path": "/a"}), true);
    check(json!({"op": "add", "path": "/b", "value": null}), true);
    check(json!({"op": "replace", "path": "/a", "value": {}}), false);
}

#[test]
fn a_default_that_a_patch_removes_is_a_change() {
    let object = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque"});
    let patch = json!([{"op": "remove", "path": "/type"}]).to_string();
    assert!(patched("Secret", &object, &patch, JSON_PATCH).unwrap().unwrap().is_changed);
}

#[test]
fn annotated_patches_have_values_as_they_were_written() {
    let check = |patch: &str, expected: &str| {
        let found = annotated(patch.as_bytes(), &json!([]));
        assert_eq!(String::from_utf8(found).unwrap(), expected);
    };
    check(
        r#"[ {"value": {"z": 1.50, "a": "<" }, "op":"add", "path": "/x"}, null ]"#,
        r#"[{"op":"add","path":"/x","value":{"z":1.50,"a":"\u003c"}},null]"#,
    );
    check(r#"[{"op":"add","op":"test","path":"/a"}]"#, r#"[{"op":"test","path":"/a"}]"#);
    check("nonsense", "[]");
}

#[test]
fn a_patch_may_have_any_number_of_operations() {
    let operation = json!({"op": "test", "path": "/a", "value": 1});
    let patch = json!(vec![operation; 10_001]).to_string();
    assert!(patched("Thing", &json!({"kind": "Thing", "a": 1}), &patch, JSON_PATCH).unwrap().is_some());
}

#[test]
fn very_many_managed_fields_are_compared_in_time() {
    const NOW: &str = "2020-01-01T00:00:00Z";
    let object = |count: usize, time: &str| {
        let entry = |at: usize| json!({"manager": format!("m{at}"), "time": time});
        json!({"metadata": {"managedFields": (0..count).map(entry).collect::<Vec<_>>()}})
    };
    let many = object(30_000, NOW);
    let started = std::time::Instant::now();
    assert!(!has_new_entry(&many, Some(&many), NOW));
    assert!(started.elapsed() < std::time::Duration::from_secs(5));
    assert!(has_new_entry(&object(2, NOW), Some(&object(1, NOW)), NOW));
    assert!(has_new_entry(&object(1, NOW), None, NOW));
    // The same manager wrote twice in a second.
    let mut changed = object(1, NOW);
    changed["data"] = json!({"a": "b"});
    assert!(has_new_entry(&changed, Some(&object(1, NOW)), NOW));
    assert!(!has_new_entry(&object(1, "2019-01-01T00:00:00Z"), None, NOW));
}
