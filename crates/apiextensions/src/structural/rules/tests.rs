use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, json};

use crate::structural::StructuralSchema;

fn object(value: Value) -> Value {
    json!({"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "n"}, "v": value})
}

/// The results of rules on the value at `v`: errors, and warnings in parentheses.
#[track_caller]
fn check(schema: Value, new: Value, old: Option<Value>, expected: &[&str]) {
    let schema = StructuralSchema::new(&json!({"type": "object", "properties": {"v": schema}})).unwrap();
    let findings = schema.validate_rules(&object(new), old.map(object).as_ref(), &ErrorList::new());
    let errors = findings.errors.iter().map(ToString::to_string);
    let found: Vec<String> = errors.chain(findings.warnings.iter().map(|text| format!("({text})"))).collect();
    assert_eq!(found, expected);
}

fn integer(rule: Value) -> Value {
    json!({"type": "integer", "x-kubernetes-validations": [rule]})
}

#[test]
fn rules_that_fail_say_so_with_the_value_or_without() {
    check(
        integer(json!({"rule": "self >= 0", "message": " not negative "})),
        json!(-1),
        None,
        &["v: Invalid value: -1: not negative"],
    );
    check(
        integer(json!({"rule": " self % 2 == 0 "})),
        json!(3),
        None,
        &["v: Invalid value: 3: failed rule: self % 2 == 0"],
    );
    check(integer(json!({"rule": "self > 5"})), json!(6), None, &[]);
    check(
        json!({"type": "object", "properties": {"a": {"type": "integer"}}, "x-kubernetes-validations": [
            {"rule": "self.a > 1", "fieldPath": ".a"}, {"rule": "has(self.b)"}]}),
        json!({"a": 1}),
        None,
        &[
            "v.a: Invalid value: failed rule: self.a > 1",
            "v: Invalid value: \"object\": rule compile error: compilation failed: ERROR: <input>:1:4: undefined field 'b'\
             \n | has(self.b)\n | ...^",
        ],
    );
}

#[test]
fn reasons_choose_the_kind_of_error() {
    for (reason, expected) in [
        ("FieldValueInvalid", "v: Invalid value: 1: m"),
        ("FieldValueForbidden", "v: Forbidden: m"),
        ("FieldValueRequired", "v: Required value: m"),
        ("FieldValueDuplicate", "v: Duplicate value: 1"),
    ] {
        check(
            integer(json!({"rule": "false", "message": "m", "reason": reason})),
            json!(1),
            None,
            &[expected],
        );
    }
}

#[test]
fn messages_may_be_computed() {
    for (expression, expected) in [
        ("'got ' + string(self)", "v: Invalid value: 1: got 1"),
        ("'  '", "v: Invalid value: 1: m"),
        ("'a\\nb'", "v: Invalid value: 1: m"),
        ("'x'.charAt(5)", "v: Invalid value: 1: m"),
    ] {
        let rule = json!({"rule": "false", "message": "m", "messageExpression": expression});
        check(integer(rule), json!(1), None, &[expected]);
    }
}

#[test]
fn messages_see_the_state_before_as_it_is() {
    let rule = |rule: &str, expression: &str, optional: bool| json!({"rule": rule, "message": "m", "messageExpression": expression, "optionalOldSelf": optional});
    for (rule, old, expected) in [
        (rule("self > oldSelf", "'was ' + string(oldSelf)", false), Some(2), "was 2"),
        // No rule reads it.
        (rule("false", "'was ' + string(oldSelf)", false), Some(2), "m"),
        // It is no optional value.
        (rule("!oldSelf.hasValue()", "oldSelf.hasValue() ? 'a' : 'b'", true), Some(2), "m"),
        (rule("oldSelf.hasValue()", "oldSelf.hasValue() ? 'a' : 'b'", true), None, "m"),
        (rule("oldSelf.hasValue()", "'got ' + string(self)", true), None, "got 1"),
    ] {
        let expected = format!("v: Invalid value: 1: {expected}");
        check(integer(rule), json!(1), old.map(|old| json!(old)), &[&expected]);
    }
}

#[test]
fn optional_states_before_are_plain_json() {
    let map = |rule: &str| {
        json!({
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"a": {"type": "integer"}, "when": {"type": "string", "format": "date-time"},
                "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}},
            "x-kubernetes-validations": [{"rule": rule, "optionalOldSelf": true, "message": "m"}],
        })
    };
    let failed: &[&str] = &["v: Invalid value: m"];
    let no_overload = "v: Invalid value: \"object\": 'no such overload': call arguments did not match a supported \
                       operator, function or macro signature for rule: m";
    let no_overload: &[&str] = &[no_overload];
    for (rule, object, expected) in [
        ("oldSelf.value() == self", json!({"a": 1}), &[][..]),
        ("self == oldSelf.value()", json!({"a": 1}), &[]),
        // Fields outside the schema are none of the new state, which has one.
        ("oldSelf.value() == self", json!({"a": 1, "u": 1}), failed),
        ("oldSelf.orValue(self) == self", json!({"a": 1, "u": 1}), failed),
        ("self == oldSelf.value()", json!({"a": 1, "u": 1}), no_overload),
        ("self == oldSelf.value() || self == self", json!({"a": 1, "u": 1}), &[]),
        // Formats are not read.
        ("self.when == oldSelf.value().when", json!({"when": "2024-01-01T00:00:00Z"}), failed),
        ("self.when == oldSelf.?when.value()", json!({"when": "2024-01-01T00:00:00Z"}), failed),
    ] {
        check(map(rule), object.clone(), Some(object), expected);
    }
    let sets = |rule: &str, expected: &[&str]| {
        check(map(rule), json!({"set": ["a", "b"]}), Some(json!({"set": ["b", "a"]})), expected);
    };
    sets("self.set == oldSelf.value().set", &[]);
    sets("oldSelf.value().set == self.set", failed);
}

#[test]
fn transition_rules_need_a_state_before() {
    let rule = json!({"rule": "self >= oldSelf", "message": "m"});
    check(integer(rule.clone()), json!(1), None, &[]);
    check(integer(rule.clone()), json!(1), Some(json!(2)), &["v: Invalid value: 1: m"]);
    check(integer(rule.clone()), json!(3), Some(json!(2)), &[]);
    let optional = json!({"rule": "oldSelf.hasValue() && self == oldSelf.value()", "optionalOldSelf": true, "message": "m"});
    check(integer(optional.clone()), json!(1), None, &["v: Invalid value: 1: m"]);
    check(integer(optional), json!(1), Some(json!(1)), &[]);

    let keyed = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
        "items": {"type": "object", "properties": {"k": {"type": "string"}, "n": integer(rule.clone())}}});
    let old = json!([{"k": "a", "n": 5}, {"k": "b", "n": 1}]);
    check(
        keyed,
        json!([{"k": "b", "n": 2}, {"k": "a", "n": 4}, {"k": "c", "n": 0}]),
        Some(old),
        &["v[1].n: Invalid value: 4: m"],
    );
    let map = json!({"type": "object", "additionalProperties": integer(rule)});
    check(map, json!({"a": 1, "b": 1}), Some(json!({"a": 2})), &["v[a]: Invalid value: 1: m"]);
}

#[test]
fn failures_of_unchanged_parts_are_warnings_unless_they_are_about_change() {
    let schema = json!({"type": "object", "properties": {
        "n": integer(json!({"rule": "self < 10", "message": "small"})),
        "t": integer(json!({"rule": "self > oldSelf", "message": "grow"})),
        "o": {"type": "string"}}});
    check(
        schema,
        json!({"n": 50, "t": 1, "o": "new"}),
        Some(json!({"n": 50, "t": 1})),
        &["v.t: Invalid value: 1: grow", "(v.n: Invalid value: 50: small)"],
    );
}

#[test]
fn a_failed_evaluation_is_reported() {
    check(
        integer(json!({"rule": "10 / self > 1"})),
        json!(0),
        None,
        &[r#"v: Invalid value: "integer": division by zero evaluating rule: 10 / self > 1"#],
    );
    check(
        json!({"x-kubernetes-int-or-string": true, "x-kubernetes-validations": [{"rule": "self > 5", "message": "m"}]}),
        json!("x"),
        None,
        &[
            r#"v: Invalid value: "": 'no such overload': call arguments did not match a supported operator, function or macro signature for rule: m"#,
        ],
    );
}

#[test]
fn rules_wait_for_an_object_in_shape() {
    let schema = StructuralSchema::new(
        &json!({"type": "object", "properties": {"v": integer(json!({"rule": "false"}))}}),
    );
    let schema = schema.unwrap();
    let path = FieldPath::new("v");
    let shapeless = vec![FieldError::required(&path, "")];
    let findings = schema.validate_rules(&object(json!(1)), None, &shapeless);
    assert_eq!(
        findings.errors.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [
            "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the \
         existing errors to complete validation"
        ]
    );
    let invalid = vec![FieldError::invalid(&path, 1, "")];
    assert_eq!(schema.validate_rules(&object(json!(1)), None, &invalid).errors.len(), 1);
}

#[test]
fn budgets_end_an_evaluation() {
    let expensive = "self.all(a, self.all(b, self.all(c, a + b + c < 1000000)))";
    let schema = json!({"type": "array", "items": {"type": "integer"}, "x-kubernetes-validations": [
        {"rule": expensive, "message": "m"}, {"rule": "false"}]});
    check(
        schema,
        (0..200).collect(),
        None,
        &[
            r#"v: Invalid value: "array": 'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: m"#,
        ],
    );
    let quadratic = "self.all(a, self.all(b, a + b < 1000000))";
    let rules: Vec<Value> = (0..30).map(|_| json!({"rule": quadratic})).collect();
    let schema = json!({"type": "array", "items": {"type": "integer"}, "x-kubernetes-validations": rules});
    check(
        schema,
        (0..300).collect(),
        None,
        &[
            r#"v: Invalid value: "array": validation failed due to running out of cost budget, no further validation rules will be run"#,
        ],
    );
}

#[test]
fn rules_see_type_and_names_of_resources() {
    let schema = StructuralSchema::new(&json!({"type": "object",
        "x-kubernetes-validations": [{"rule": "self.metadata.name.startsWith('x') && self.kind == 'K'", "message": "m"}],
        "properties": {"v": {"type": "object", "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true,
            "x-kubernetes-validations": [{"rule": "self.apiVersion == 'v1'", "message": "e"}]}}}))
    .unwrap();
    let resource = json!({"apiVersion": "v2", "kind": "P"});
    let findings = schema.validate_rules(&object(resource), None, &ErrorList::new());
    let errors: Vec<String> = findings.errors.iter().map(ToString::to_string).collect();
    assert_eq!(errors, ["<nil>: Invalid value: m", "v: Invalid value: e"]);
}

#[test]
fn rules_inside_all_of_are_about_the_same_value() {
    check(
        json!({"type": "object", "x-kubernetes-validations": [{"rule": "true"}],
            "properties": {"a": {"type": "integer"}},
            "allOf": [{"x-kubernetes-validations": [{"rule": "self.a > 5", "message": "big"}],
                "properties": {"a": {"x-kubernetes-validations": [{"rule": "self > 3", "message": "large"}]}}}]}),
        json!({"a": 1}),
        None,
        &["v: Invalid value: big", "v.a: Invalid value: 1: large"],
    );
}

#[test]
fn names_are_escaped_and_unknown_fields_unseen() {
    check(
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"a-b": {"type": "integer"}, "namespace": {"type": "string"}, "x": {"x-kubernetes-preserve-unknown-fields": true}},
            "x-kubernetes-validations": [{"rule": "self.a__dash__b == 1 && self.namespace == 'n'", "message": "m"}, {"rule": "has(self.x)"}]}),
        json!({"a-b": 1, "namespace": "n", "x": 1}),
        None,
        &[
            "v: Invalid value: \"object\": rule compile error: compilation failed: ERROR: <input>:1:4: undefined field 'x'\
           \n | has(self.x)\n | ...^",
        ],
    );
}

/// Estimates that decide whether a definition is accepted.
#[test]
fn costs_are_estimated_from_limits() {
    let rows = [
        (json!({"type": "integer"}), "self > 0", 2, 1_572_864),
        (json!({"type": "string", "maxLength": 10}), "self.contains('x')", 5, 1_048_576),
        (
            json!({"type": "array", "maxItems": 10, "items": {"type": "integer"}}),
            "self.all(x, x > 0)",
            52,
            1_048_576,
        ),
        (json!({"type": "array", "items": {"type": "integer"}}), "self.all(x, x > 0)", 7_864_317, 1_048_576),
    ];
    for (schema, rule, max_cost, max_cardinality) in rows {
        let root = json!({"type": "object", "properties": {"v": schema}});
        let root = StructuralSchema::new(&root).unwrap();
        let scope = root.rule_scope().property("v").unwrap();
        let rule = super::Rule { rule: rule.into(), ..super::Rule::default() };
        let compiled = scope
            .compile(&[rule], &super::PreexistingExpressions::All, &super::CompileEffort::new())
            .unwrap()
            .remove(0);
        assert_eq!(compiled.error, None);
        assert_eq!((compiled.max_cost, compiled.max_cardinality), (max_cost, max_cardinality), "{schema}");
    }
}

#[test]
fn the_result_of_a_call_may_have_any_size() {
    let root = json!({"type": "object", "properties": {"n": {"type": "integer"}, "s": {"type": "string", "maxLength": 10}}});
    let root = StructuralSchema::new(&root).unwrap();
    let rows = [
        ("'n is ' + string(self.n)", 1_844_674_407_370_955_267),
        ("'s is ' + self.s", 7),
        ("'s is ' + self.s.lowerAscii()", 11),
    ];
    for (message, max_cost) in rows {
        let rule =
            super::Rule { rule: "true".into(), message_expression: message.into(), ..super::Rule::default() };
        let compiled = root
            .rule_scope()
            .compile(&[rule], &super::PreexistingExpressions::All, &super::CompileEffort::new())
            .unwrap()
            .remove(0);
        assert_eq!(compiled.message_expression_max_cost, max_cost, "{message}");
    }
}

#[test]
fn rules_of_items_below_what_is_no_list_fail_for_lists() {
    let items = json!({"type": "object", "properties": {"a": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.a < 10"}]});
    let schema =
        json!({"type": "object", "properties": {"list": {"type": "object", "maxItems": 9, "items": items}}});
    let why = "failed to convert to declType for CEL validation rules";
    let expected = format!("v.list[0]: Invalid value: \"object\": rule compiler initialization error: {why}");
    check(schema.clone(), json!({"list": [{"a": 1}]}), None, &[&expected]);
    check(schema, json!({"list": {}}), None, &[]);
}
