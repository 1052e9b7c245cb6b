use pintle_machinery::{FieldPath, Value, json};

use crate::structural::{StructuralSchema, effort::Effort};

/// The errors of a value at `v`, each with its reason.
fn errors(schema: &Value, object: Value, old: Option<Value>) -> Vec<String> {
    let schema = StructuralSchema::new(&json!({"type": "object", "properties": {"v": schema}})).unwrap();
    let old = old.map(|old| json!({"v": old}));
    let errors = schema.validate_values(&json!({"v": object}), old.as_ref());
    errors
        .iter()
        .map(|error| format!("{error} ({})", error.error_type.reason().trim_start_matches("FieldValue")))
        .collect()
}

#[track_caller]
fn check(schema: Value, rows: &[(Value, &[&str])]) {
    for (object, expected) in rows {
        assert_eq!(errors(&schema, object.clone(), None), *expected, "{object}");
    }
}

#[test]
fn a_negative_limit_of_a_length_is_not_shown() {
    check(
        json!({"type": "string", "maxLength": -1}),
        &[(json!("x"), &["v: Too long: value is too long (TooLong)"])],
    );
}

#[test]
fn types_are_checked_first() {
    check(
        json!({"type": "string"}),
        &[
            (json!("x"), &[]),
            (
                json!(5),
                &[
                    r#"v: Invalid value: "integer": v in body must be of type string: "integer" (TypeInvalid)"#,
                ],
            ),
            (
                json!(null),
                &[r#"v: Invalid value: "null": v in body must be of type string: "null" (TypeInvalid)"#],
            ),
        ],
    );
    check(
        json!({"type": "string", "nullable": true, "enum": ["a"]}),
        &[
            (json!("a"), &[]),
            (json!(null), &[r#"v: Unsupported value: null: supported values: "a" (NotSupported)"#]),
        ],
    );
    check(
        json!({"type": "integer"}),
        &[
            (json!(5), &[]),
            (json!(5.0), &[]),
            (
                json!(1.5),
                &[
                    r#"v: Invalid value: "number": v in body must be of type integer: "number" (TypeInvalid)"#,
                    r#"<nil>: Invalid value: "": Checked value must be of type integer (default format) in v (Invalid)"#,
                ],
            ),
        ],
    );
    check(json!({"type": "number"}), &[(json!(5), &[]), (json!(1.5), &[])]);
    check(
        json!({"x-kubernetes-int-or-string": true}),
        &[
            (json!(5), &[]),
            (json!("5"), &[]),
            (
                json!(true),
                &[
                    r#"v: Invalid value: "boolean": v in body must be of type integer,string: "boolean" (TypeInvalid)"#,
                ],
            ),
        ],
    );
    check(
        json!({"x-kubernetes-preserve-unknown-fields": true}),
        &[(json!(5), &[]), (json!({"a": [1]}), &[])],
    );
}

#[test]
fn formats_belong_to_types() {
    check(
        json!({"type": "string", "format": "date"}),
        &[
            (json!("2020-01-01"), &[]),
            (json!("x"), &[r#"v: Invalid value: "x": v in body must be of type date: "x" (TypeInvalid)"#]),
            (
                json!(5),
                &[r#"v: Invalid value: "int64": v in body must be of type date: "int64" (TypeInvalid)"#],
            ),
            (json!(true), &[r#"v: Invalid value: "": v in body must be of type date: "" (TypeInvalid)"#]),
            (json!([]), &[]),
        ],
    );
    check(json!({"type": "string", "format": "unheard-of"}), &[(json!("x"), &[])]);
    check(
        json!({"type": "integer", "format": "int32"}),
        &[
            (json!(2147483647), &[]),
            (
                json!(2147483648u64),
                &[
                    r#"<nil>: Invalid value: "": Checked value must be of type integer with format int32 in v (Invalid)"#,
                ],
            ),
            (
                json!("x"),
                &[r#"v: Invalid value: "string": v in body must be of type integer: "string" (TypeInvalid)"#],
            ),
        ],
    );
    check(
        json!({"type": "number", "format": "float"}),
        &[
            (json!(1e38), &[]),
            (
                json!(1e39),
                &[
                    r#"<nil>: Invalid value: "": Checked value must be of type number with format float in v (Invalid)"#,
                ],
            ),
        ],
    );
}

#[test]
fn numbers_have_limits() {
    check(
        json!({"type": "integer", "minimum": 2, "maximum": 5, "multipleOf": 2}),
        &[
            (json!(4), &[]),
            (
                json!(1),
                &[
                    "v: Invalid value: 1: v in body should be a multiple of 2 (Invalid)",
                    "v: Invalid value: 1: v in body should be greater than or equal to 2 (Invalid)",
                ],
            ),
            (json!(6), &["v: Invalid value: 6: v in body should be less than or equal to 5 (Invalid)"]),
            (json!(6.0), &["v: Invalid value: 6: v in body should be less than or equal to 5 (Invalid)"]),
        ],
    );
    check(
        json!({"type": "number", "minimum": 0.5, "exclusiveMinimum": true, "maximum": 1.5, "exclusiveMaximum": true}),
        &[
            (json!(1.25), &[]),
            (json!(0.5), &["v: Invalid value: 0.5: v in body should be greater than 0.5 (Invalid)"]),
            (json!(1.5), &["v: Invalid value: 1.5: v in body should be less than 1.5 (Invalid)"]),
            // The limit of an integer is truncated to an integer.
            (json!(1), &["v: Invalid value: 1: v in body should be less than 1 (Invalid)"]),
        ],
    );
    check(
        json!({"type": "number", "multipleOf": 0.1}),
        &[
            (json!(0.3), &[]),
            (json!(0.35), &["v: Invalid value: 0.35: v in body should be a multiple of 0.1 (Invalid)"]),
            (
                json!(2),
                &["v: Invalid value: 0: factor MultipleOf declared for v must be positive: 0 (Invalid)"],
            ),
        ],
    );
    check(
        json!({"type": "integer", "maximum": 1.5}),
        &[(
            json!(1),
            &[
                r#"<nil>: Invalid value: "": Maximum boundary value must be of type integer (default format) in v (Invalid)"#,
            ],
        )],
    );
}

#[test]
fn a_text_with_a_wrong_length_and_pattern_has_one_error() {
    check(
        json!({"type": "string", "minLength": 2, "maxLength": 4, "pattern": "^[a-z]+$"}),
        &[
            (json!("abc"), &[]),
            (json!("abcde"), &["v: Too long: may not be more than 4 bytes (TooLong)"]),
            (json!("ééé"), &["v: Invalid value: \"ééé\": v in body should match '^[a-z]+$' (Invalid)"]),
            (json!("A"), &["v: Invalid value: \"A\": v in body should be at least 2 chars long (Invalid)"]),
        ],
    );
}

#[test]
fn enums_convert_numbers() {
    check(
        json!({"type": "integer", "enum": [1, 2]}),
        &[
            (json!(1), &[]),
            (json!(2.0), &[]),
            (json!(3), &[r#"v: Unsupported value: 3: supported values: "1", "2" (NotSupported)"#]),
        ],
    );
    check(
        json!({"x-kubernetes-int-or-string": true, "enum": ["A", 7]}),
        &[
            (json!(65), &[]),
            (json!("7"), &[r#"v: Unsupported value: "7": supported values: "A", "7" (NotSupported)"#]),
        ],
    );
    check(
        json!({"x-kubernetes-preserve-unknown-fields": true, "enum": [{"a": 1}, [true]]}),
        &[
            (json!({"a": 1}), &[]),
            (
                json!([]),
                &[r#"v: Unsupported value: []: supported values: "{\"a\":1}", "[true]" (NotSupported)"#],
            ),
        ],
    );
}

#[test]
fn lists_and_objects_are_counted_and_walked() {
    check(
        json!({"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "integer"}}),
        &[
            (json!([1]), &[]),
            (json!([]), &["v: Invalid value: 0: v in body should have at least 1 items (Invalid)"]),
            (
                json!([1, "x", 2]),
                &[
                    r#"v[1]: Invalid value: "string": v[1] in body must be of type integer: "string" (TypeInvalid)"#,
                    "v: Too many: 3: must have at most 2 items (TooMany)",
                ],
            ),
        ],
    );
    check(
        json!({"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": {"type": "integer"}}),
        &[
            (json!({"a": 1}), &[]),
            (json!({}), &["v: Invalid value: 0: v in body should have at least 1 properties (Invalid)"]),
            (
                json!({"a.b": "x", "c": 1}),
                &[
                    "v: Too many: 2: must have at most 1 item (TooMany)",
                    r#"v.a.b: Invalid value: "string": v.a.b in body must be of type integer: "string" (TypeInvalid)"#,
                ],
            ),
        ],
    );
    check(
        json!({"type": "object", "required": ["a", "b"], "properties": {"a": {"type": "string"}}}),
        &[(
            json!({"a": 1}),
            &[
                r#"v.a: Invalid value: "integer": v.a in body must be of type string: "integer" (TypeInvalid)"#,
                "v.b: Required value (Required)",
            ],
        )],
    );
    check(
        json!({"type": "object", "additionalProperties": false, "properties": {"a": {"type": "string"}}}),
        &[(json!({"b": 1}), &[r#"v: Invalid value: "b": v.b in body is a forbidden property (Invalid)"#])],
    );
}

#[test]
fn the_errors_of_alternatives_are_those_of_the_best_match() {
    check(
        json!({"type": "integer", "anyOf": [{"maximum": 3}, {"minimum": 10}]}),
        &[
            (json!(1), &[]),
            (
                json!(5),
                &[
                    r#"<nil>: Invalid value: "": "v" must validate at least one schema (anyOf) (Invalid)"#,
                    "v: Invalid value: 5: v in body should be less than or equal to 3 (Invalid)",
                ],
            ),
        ],
    );
    check(
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "oneOf": [{"required": ["x"]}, {"required": ["y"]}]}),
        &[
            (json!({"x": 1}), &[]),
            (
                json!({}),
                &[
                    r#"<nil>: Invalid value: "": "v" must validate one and only one schema (oneOf). Found none valid (Invalid)"#,
                    "v.x: Required value (Required)",
                ],
            ),
            (
                json!({"x": 1, "y": 1}),
                &[
                    r#"<nil>: Invalid value: "": "v" must validate one and only one schema (oneOf). Found 2 valid alternatives (Invalid)"#,
                ],
            ),
        ],
    );
    check(
        json!({"type": "integer", "allOf": [{"minimum": 3}, {"maximum": 7}], "not": {"enum": [5]}}),
        &[
            (json!(4), &[]),
            (
                json!(2),
                &[
                    "v: Invalid value: 2: v in body should be greater than or equal to 3 (Invalid)",
                    r#"<nil>: Invalid value: "": "v" must validate all the schemas (allOf) (Invalid)"#,
                ],
            ),
            (json!(5), &[r#"<nil>: Invalid value: "": "v" must not validate the schema (not) (Invalid)"#]),
        ],
    );
    // The second alternative passes more checks: the type of its property.
    check(
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "anyOf": [
            {"properties": {"a": {"enum": ["x"]}}, "required": ["b"]},
            {"properties": {"a": {"minLength": 1}}, "required": ["c"]},
        ]}),
        &[(
            json!({"a": "y"}),
            &[
                r#"<nil>: Invalid value: "": "v" must validate at least one schema (anyOf) (Invalid)"#,
                r#"v.a: Unsupported value: "y": supported values: "x" (NotSupported)"#,
                "v.b: Required value (Required)",
            ],
        )],
    );
}

#[test]
fn unchanged_parts_are_ratcheted() {
    let schema = json!({"type": "object", "required": ["r"], "properties": {
        "a": {"type": "string", "maxLength": 1},
        "list": {"type": "array", "items": {"type": "integer", "maximum": 1}},
        "keyed": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": {
            "type": "object", "properties": {"k": {"type": "string"}, "n": {"type": "integer", "maximum": 1}}}},
        "all": {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}},
            "allOf": [{"properties": {"x": {"maximum": 1}}}]},
        "r": {"type": "string"},
    }});
    let old =
        json!({"a": "xx", "list": [5], "keyed": [{"k": "p", "n": 5}, {"k": "q", "n": 5}], "all": {"x": 5}});
    assert!(errors(&schema, old.clone(), Some(old.clone())).is_empty());
    let with = |name: &str, value: Value| {
        let mut new = old.clone();
        new["r"] = json!("");
        new[name] = value;
        errors(&schema, new, Some(old.clone()))
    };
    assert!(with("r", json!("x")).is_empty());
    assert_eq!(with("a", json!("yy")), ["v.a: Too long: may not be more than 1 byte (TooLong)"]);
    assert_eq!(
        with("list", json!([5, 1])),
        ["v.list[0]: Invalid value: 5: v.list[0] in body should be less than or equal to 1 (Invalid)"]
    );
    assert!(with("keyed", json!([{"k": "q", "n": 5}, {"k": "new", "n": 1}])).is_empty());
    assert_eq!(
        with("keyed", json!([{"k": "q", "n": 6}])),
        ["v.keyed[0].n: Invalid value: 6: v.keyed[0].n in body should be less than or equal to 1 (Invalid)"]
    );
    assert_eq!(
        with("all", json!({"x": 5, "y": 1})),
        [
            "v.all.x: Invalid value: 5: v.all.x in body should be less than or equal to 1 (Invalid)",
            r#"<nil>: Invalid value: "": "v.all" must validate all the schemas (allOf). None validated (Invalid)"#,
        ]
    );
    // Missing members are reported when anything in the object changes.
    let mut new = old.clone();
    new["a"] = json!("x");
    assert_eq!(errors(&schema, new, Some(old.clone())), ["v.r: Required value (Required)"]);
}

#[test]
fn status_is_a_whole_in_messages_and_a_part_in_paths() {
    let schema = StructuralSchema::new(&json!({"type": "object", "properties": {
        "spec": {"type": "string"},
        "status": {"type": "object", "required": ["r"], "properties": {"a": {"type": "integer", "maximum": 1}}}}}))
    .unwrap();
    let errors = schema.validate_status_values(&json!({"spec": 5, "status": {"a": 5}}), &json!({}));
    assert_eq!(
        errors.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [
            "status.a: Invalid value: 5: a in body should be less than or equal to 1",
            "status.r: Required value",
        ]
    );
    let errors = schema.validate_status_values(&json!({"status": 5}), &json!({}));
    assert_eq!(
        errors[0].to_string(),
        r#"status: Invalid value: "integer":  in body must be of type object: "integer""#
    );
}

#[test]
fn patterns_are_in_the_syntax_of_go() {
    check(
        json!({"type": "string", "pattern": r"^\d+\Q.\E\w\z"}),
        &[
            (json!("1.a"), &[]),
            (json!("١.a"), &[r#"v: Invalid value: "١.a": v in body should match '^\d+\Q.\E\w\z' (Invalid)"#]),
        ],
    );
    check(
        json!({"type": "string", "pattern": "("}),
        &[(
            json!(""),
            &[
                r#"v: Invalid value: "": v in body should match '(, but pattern is invalid: error parsing regexp: missing closing ): `(`' (Invalid)"#,
            ],
        )],
    );
}

#[test]
fn defaults_are_validated_by_all_formats() {
    let check = |schema: Value, default: Value, expected: &[&str]| {
        let schema = StructuralSchema::new(&json!({"type": "object", "properties": {"v": schema}})).unwrap();
        let place = schema.place().property("v").unwrap();
        let errors = place.check_values(&default, &FieldPath::new("d"), &Effort::new());
        assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), expected, "{default}");
    };
    let unknown = || json!({"type": "string", "format": "unknown"});
    check(unknown(), json!("x"), &[]);
    check(unknown(), json!(["x"]), &[]);
    check(unknown(), json!(true), &[r#"d: Invalid value: "":  in body must be of type unknown: """#]);
    check(unknown(), json!(5), &[r#"d: Invalid value: "int64":  in body must be of type unknown: "int64""#]);
    check(
        json!({"type": "integer", "format": "uint32"}),
        json!(2.5),
        &[
            r#"d: Invalid value: "float64":  in body must be of type uint32: "float64""#,
            r#"d: Invalid value: "": Checked value must be of type integer (default format) in "#,
        ],
    );
    check(json!({"type": "integer", "format": "uint32"}), json!(-1), &[]);
    check(
        json!({"type": "number", "format": "int64"}),
        json!({}),
        &[r#"d: Invalid value: "":  in body must be of type int64: """#],
    );
}
