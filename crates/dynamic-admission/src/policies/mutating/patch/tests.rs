use super::*;
use pintle_admission_cel::{
    Compiler, EnvironmentType, Input, OptionalVariables, POLICY_BUDGET, Returns, Variables,
};
use pintle_machinery::json;
use pintle_offload::Pace;
use pintle_schema::Schema;

/// The patch of a mutation.
fn evaluate<'p>(
    mutation: &'p Mutation,
    input: &Input<'p>,
    values: &'p Variables<'p>,
) -> Result<Patch, MutationError> {
    let mut pace = Pace::new();
    let patch = async {
        let mut evaluation = Evaluation::new(input, values, POLICY_BUDGET, &mut pace);
        mutation.evaluate(&mut evaluation).await
    };
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(patch)
}

/// The object after a mutation of a kind of the core group, or the reason why there is none.
fn mutate_kind(kind: &str, mutation: &Mutation, object: &Value) -> Result<Value, MutationError> {
    let set = Compiler::with_variables().compile_variables([], OptionalVariables::default());
    let values = Variables::new(&set);
    let input = Input { object: Some(object), ..Input::default() };
    let patch = evaluate(mutation, &input, &values)?;
    let schema = Schema::builtin().by_kind("", "v1", kind).expect("a built-in kind");
    let kind = GroupVersionKind::new("", "v1", kind);
    patch.apply(object, PatchedKind { kind: &kind, schema, is_published: true }).map(|(object, _)| object)
}

fn configuration(expression: &str) -> Mutation {
    let compiler = Compiler::with_variables();
    let optional = OptionalVariables::default();
    Mutation::ApplyConfiguration(compiler.compile_mutation(
        expression,
        EnvironmentType::StoredExpressions,
        optional,
        Returns::configuration(),
    ))
}

fn json_patch_of(expression: &str) -> Mutation {
    let compiler = Compiler::with_variables();
    let optional = OptionalVariables::default();
    Mutation::JsonPatch(compiler.compile_mutation(
        expression,
        EnvironmentType::StoredExpressions,
        optional,
        Returns::json_patch(),
    ))
}

fn config_map() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "b"}})
}

fn mutate(mutation: &Mutation) -> Result<Value, MutationError> {
    mutate_kind("ConfigMap", mutation, &config_map())
}

/// The texts of failures, for which the failure policy decides.
fn failure(mutation: &Mutation) -> String {
    match mutate(mutation) {
        Err(MutationError::Failed(why)) => why,
        other => panic!("{other:?}"),
    }
}

/// The texts of refusals.
fn refusal(mutation: &Mutation) -> String {
    match mutate(mutation) {
        Err(MutationError::Refused(status)) => status.message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn configurations_are_merged() {
    for (expression, path, expected) in [
        ("Object{data: {'x': object.data.a + 'c'}}", "data", json!({"a": "b", "x": "bc"})),
        ("Object{?data: object.?none}", "data", json!({"a": "b"})),
        ("Object{metadata: Object.metadata{labels: {'a/b': 'c'}}}", "metadata.labels", json!({"a/b": "c"})),
        ("Object{kind: 'Secret', apiVersion: 'v2'}", "kind", json!("ConfigMap")),
    ] {
        let object = mutate(&configuration(expression)).expect(expression);
        assert_eq!(object.at(path), Some(&expected), "{expression}");
    }
}

#[test]
fn failures_of_configurations_are_told() {
    for (expression, expected) in [
        (
            "Object{bogus: 'x'}",
            "error applying patch: failed to convert patch object to typed object: .bogus: field not declared in schema",
        ),
        (
            "Object{data: null}",
            "error applying patch: failed to convert patch object to typed object: .data: expected map, got \
             &{NULL_VALUE}",
        ),
        (
            "Object{metadata: Object.spec{}}",
            "type mismatch: unexpected type name \"Object.spec\", expected \"Object.metadata\", which matches field name \
             path from root Object type",
        ),
        (
            "Object{binaryData: {'x': b'ab'}}",
            "error applying patch: failed to convert patch object to typed object: .binaryData.x: expected string, got \
             &value.valueUnstructured{Value:[]uint8{0x61, 0x62}}",
        ),
        (
            "Object{metadata: Object.metadata{creationTimestamp: timestamp('2020-01-01T00:00:00Z'), generation: 5u}}",
            "error applying patch: failed to convert patch object to typed object: errors:\n  \
             .metadata.creationTimestamp: expected any scalar, got &{2020-01-01 00:00:00 +0000 UTC}\n  \
             .metadata.generation: expected numeric (int or float), got uint64",
        ),
        (
            "Object{binaryData: {'x': '!'}}",
            "unable to convert unstructured object to /v1, Kind=ConfigMap: error decoding from json: illegal base64 data \
             at input byte 0",
        ),
        (
            "Object{data: {'x': object.data.none}}",
            "expression 'Object{data: {'x': object.data.none}}' resulted in error: no such key: none",
        ),
        (
            "Object{metadata: Object.metadata{managedFields: []}}",
            "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: \
             .metadata.managedFields",
        ),
    ] {
        assert_eq!(failure(&configuration(expression)), expected, "{expression}");
    }
}

#[test]
fn a_kind_of_another_group_has_no_types() {
    let set = Compiler::with_variables().compile_variables([], OptionalVariables::default());
    let values = Variables::new(&set);
    let mutation = configuration("Object{spec: Object.spec{replicas: 7}}");
    let input = Input::default();
    let patch = evaluate(&mutation, &input, &values).expect("a patch");
    let schema = Schema::builtin().by_kind("autoscaling", "v1", "Scale").expect("a built-in kind");
    let kind = GroupVersionKind::new("autoscaling", "v1", "Scale");
    let patched = PatchedKind { kind: &kind, schema, is_published: false };
    let expected = "error applying patch: failed to convert patch object to typed object: no corresponding type for \
                    autoscaling/v1, Kind=Scale";
    assert_eq!(patch.apply(&json!({}), patched), Err(MutationError::Failed(expected.to_owned())));
}

#[test]
fn patches_are_applied_in_order() {
    for (expression, path, expected) in [
        ("[JSONPatch{op: 'add', path: '/data/x', value: 'y'}]", "data", json!({"a": "b", "x": "y"})),
        (
            "[JSONPatch{op: 'copy', from: '/data/a', path: '/data/b'}, JSONPatch{op: 'remove', path: '/data/a'}]",
            "data",
            json!({"b": "b"}),
        ),
        (
            "[JSONPatch{op: 'add', path: '/metadata/labels', value: {'a': 'b'}}]",
            "metadata.labels",
            json!({"a": "b"}),
        ),
        (
            "[JSONPatch{op: 'replace', path: '/metadata', value: Object.metadata{name: 'n', labels: {'a': 'b'}}}]",
            "metadata",
            json!({"name": "n", "labels": {"a": "b"}}),
        ),
        ("[JSONPatch{op: 'remove', path: '/kind'}]", "kind", json!("ConfigMap")),
        // A test that fails drops the whole patch.
        (
            "[JSONPatch{op: 'remove', path: '/data/a'}, JSONPatch{op: 'test', path: '/data', value: 'nope'}]",
            "data",
            json!({"a": "b"}),
        ),
    ] {
        let object = mutate(&json_patch_of(expression)).expect(expression);
        assert_eq!(object.at(path), Some(&expected), "{expression}");
    }
}

#[test]
fn failures_of_patches_are_told() {
    for (expression, expected) in [
        (
            "[JSONPatch{op: 'add', path: '/metadata/annotations/x', value: 'y'}]",
            "JSON Patch: add operation does not apply: doc is missing path: \"/metadata/annotations/x\": missing value",
        ),
        ("[JSONPatch{op: 'frob', path: '/data/x'}]", "JSON Patch: Unexpected kind: frob"),
        (
            "[JSONPatch{op: 'add', path: '/data', value: {1: 'x'}}]",
            "JSONPath valueExpression evaluated to a type that could not marshal to JSON: unsupported type conversion \
             from 'int' to string",
        ),
        (
            "[JSONPatch{op: 'add', path: '/data', value: {'a': quantity('1')}}]",
            "JSONPath valueExpression evaluated to a type that could not marshal to JSON: type conversion error from \
             'Quantity' to '*structpb.Value'",
        ),
        (
            "[JSONPatch{op: 'add', path: '/x', value: Object.spec{selector: Object.spec.wrong{}}}]",
            "type mismatch: unexpected type name \"Object.spec.wrong\", expected \"Object.spec.selector\", which matches \
             field name path from root Object type",
        ),
    ] {
        assert_eq!(failure(&json_patch_of(expression)), expected, "{expression}");
    }
    for (expression, expected) in [
        (
            "[JSONPatch{op: 'add', path: '/data/x', value: 5}]",
            "Internal error occurred: json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
        ),
        (
            "[JSONPatch{op: 'replace', path: '/kind', value: 'Foo'}]",
            "Internal error occurred: no kind \"Foo\" is registered for version \"v1\" in scheme \
             \"pkg/api/legacyscheme/scheme.go:30\"",
        ),
        (
            "[JSONPatch{op: 'replace', path: '/apiVersion', value: 'a/b/c'}]",
            "Internal error occurred: unexpected GroupVersion string: a/b/c",
        ),
        (
            "[JSONPatch{op: 'add', path: '/bogus', value: 'y'}]",
            "Internal error occurred: strict decoding error: unknown field \"bogus\"",
        ),
    ] {
        assert_eq!(refusal(&json_patch_of(expression)), expected, "{expression}");
    }
}

#[test]
fn patches_are_no_larger_than_requests() {
    // Each step doubles the value, which is shared.
    let doubled = "[['0123456789012345678901234567890123456789']]".to_owned()
        + &(0..20).map(|step| format!(".map(v{step}, [v{step}, v{step}])")).collect::<String>();
    let limit = "operation cancelled: actual cost limit exceeded";
    let why =
        failure(&json_patch_of(&format!("[JSONPatch{{op: 'add', path: '/data/x', value: {doubled}}}]")));
    assert!(why.ends_with(limit), "{why}");
    let why = failure(&configuration(&format!("Object{{data: {doubled}}}")));
    assert!(why.ends_with(limit), "{why}");
    // So many copies of a value grow beyond the limit of copies.
    let copies = "[JSONPatch{op: 'add', path: '/data/x', value: '0123456789'}] + lists.range(18).map(i, \
                  JSONPatch{op: 'copy', from: '/data', path: '/data/c' + string(i)})";
    let why = failure(&json_patch_of(copies));
    assert!(why.starts_with("JSON Patch: "), "{why}");
}

#[test]
fn too_expensive_expressions_end() {
    let expression =
        "Object{data: {'n': string(lists.range(100000).all(i, lists.range(100000).all(j, i + j >= 0)))}}";
    let why = failure(&configuration(expression));
    assert!(why.ends_with("operation cancelled: actual cost limit exceeded"), "{why}");
}

#[test]
fn a_custom_resource_keeps_the_version_and_names_a_kind() {
    use pintle_schema::{SchemaBuilder, Structural, Type};
    let mut builder = SchemaBuilder::new();
    let root = builder.scalar(Type::Any);
    builder.set_structural(root, Structural { preserve_unknown_fields: true, ..Structural::default() });
    let schema = builder.finish(root);
    let kind = GroupVersionKind::new("g.io", "v1", "Thing");
    let object = json!({"apiVersion": "g.io/v1", "kind": "Thing"});
    let check = |operation: Value, expected: Result<&str, &str>| {
        let patched = PatchedKind { kind: &kind, schema: schema.root(), is_published: true };
        let found = match Patch::Operations(json!([operation])).apply(&object, patched) {
            Ok((object, found)) => Ok(format!("{} in {}", object.str_at("kind"), found.version)),
            Err(MutationError::Refused(status)) => Err(status.message),
            Err(error) => panic!("{error:?}"),
        };
        let expected = expected.map(str::to_owned).map_err(|why| format!("Internal error occurred: {why}"));
        assert_eq!(found, expected, "{operation}");
    };
    let replace = |path: &str, value: &str| json!({"op": "replace", "path": path, "value": value});
    check(replace("/kind", "Other"), Ok("Other in v1"));
    check(replace("/apiVersion", "g.io/v2"), Ok("Thing in v2"));
    let missing = r#"Object 'Kind' is missing in '{"apiVersion":"g.io/v1"}'"#;
    check(json!({"op": "remove", "path": "/kind"}), Err(missing));
    let unsuitable = r#"failed to convert object: apps/v1, Kind=Thing is unstructured and is not suitable for converting to "g.io/v1""#;
    check(replace("/apiVersion", "apps/v1"), Err(unsuitable));
    // Another mutation does not give the object its kind back.
    let renamed = json!({"apiVersion": "g.io/v1", "kind": "Other"});
    let patched = PatchedKind { kind: &kind, schema: schema.root(), is_published: true };
    let label = json!([{"op": "add", "path": "/a", "value": 1}]);
    let (object, _) = Patch::Operations(label).apply(&renamed, patched).unwrap();
    assert_eq!(object["kind"], "Other");
    let untyped = "error applying patch: failed to convert patch object to typed object: no corresponding type for \
                   g.io/v1, Kind=Other";
    let applied = Patch::Configuration(json!({"a": 1})).apply(&renamed, patched);
    assert_eq!(applied, Err(MutationError::Failed(untyped.to_owned())));
}

#[test]
fn built_in_objects_are_changed_in_the_version_of_the_request() {
    let check = |matched: [&str; 3], requested: [&str; 3], expected: Result<(), &str>| {
        let kind = |[group, version, kind]: [&str; 3]| GroupVersionKind::new(group, version, kind);
        let [group, version, name] = matched;
        let schema = Schema::builtin().by_kind(group, version, name).unwrap();
        let (matched, requested) = (kind(matched), kind(requested));
        let matched = PatchedKind { kind: &matched, schema, is_published: true };
        let expected = expected.map_err(|why| MutationError::Failed(why.to_owned()));
        assert_eq!(check_version(matched, &requested), expected);
    };
    let scaler = |version: &'static str| ["autoscaling", version, "HorizontalPodAutoscaler"];
    check(scaler("v1"), scaler("v1"), Ok(()));
    let unknown =
        "converting (v2.HorizontalPodAutoscaler) to (v1.HorizontalPodAutoscaler): unknown conversion";
    check(scaler("v2"), scaler("v1"), Err(unknown));
    let scheme = "pkg/api/legacyscheme/scheme.go:30";
    let unsuitable = format!(r#"v1.Event is not suitable for converting to "v1" in scheme "{scheme}""#);
    check(["events.k8s.io", "v1", "Event"], ["", "v1", "Event"], Err(&unsuitable));
}
