//! The cost of hostile definitions and objects. Each case is a small input that once took minutes, or all memory.
//!
//! Memory is counted. Times are those of a debug build, which is about twenty times slower than a release build.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests")]

use pintle_apiextensions::{
    columns, resources,
    structural::{InvalidMetadata, StructuralSchema},
};
use pintle_counting_allocator::{CountingAllocator, peak_of};
use pintle_machinery::{ErrorList, GroupKind, Map, Status, Value, json};
use pintle_registry::testing::{MemoryRegistry, with_context};
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const MIB: usize = 1 << 20;
/// The maximum memory of a case beyond its input, in bytes.
const MEMORY: usize = 160 * MIB;
/// The maximum duration of a case in a debug build.
const TIME: Duration = Duration::from_secs(20);

/// Runs a case and fails when it exceeds the limits.
fn check<T>(what: &str, run: impl FnOnce() -> T) -> T {
    let started = Instant::now();
    let (result, peak) = peak_of(run);
    let took = started.elapsed();
    println!("{what}: {} KiB, {took:?}", peak / 1024);
    assert!(peak <= MEMORY, "{what} took {} KiB", peak / 1024);
    assert!(took <= TIME, "{what} took {took:?}");
    result
}

/// The message for the client; building it is part of the cost.
fn told(errors: &ErrorList) -> String {
    Status::invalid(&GroupKind::new("g", "K"), "n", errors).message
}

fn schema(of_items: Value) -> StructuralSchema {
    let items = json!({"type": "array", "items": of_items});
    StructuralSchema::new(&json!({"type": "object", "properties": {"v": items}})).unwrap()
}

fn list(item: Value, count: usize) -> Value {
    json!({"v": vec![item; count]})
}

/// All processing of a written object.
fn write(schema: &StructuralSchema, mut object: Value, old: Option<&Value>) -> ErrorList {
    schema.coerce(&mut object, InvalidMetadata::Refuse).unwrap();
    schema.set_defaults(&mut object);
    let mut errors = schema.validate(&object, old);
    let findings = schema.validate_rules(&object, old, &errors);
    errors.extend(findings.errors);
    errors
}

fn refused(what: &str, schema: &StructuralSchema, object: Value, expected: &str) {
    let message = check(what, || told(&write(schema, object, None)));
    let shown: String = message.chars().take(300).collect();
    assert!(message.contains(expected), "{what}: {shown}");
}

fn numbers(count: usize) -> Vec<Value> {
    (0..count).map(Value::from).collect()
}

fn values() {
    let allowed = json!({"type": "integer", "enum": numbers(100_000)});
    let accepted =
        check("values among many", || write(&schema(allowed.clone()), list(json!(99_999), 300_000), None));
    assert!(accepted.is_empty());
    refused(
        "values that are none of many",
        &schema(allowed),
        list(json!(-1), 300_000),
        "Unsupported value: -1",
    );
    refused(
        "values of a wrong type",
        &schema(json!({"type": "string"})),
        list(json!(1), 400_000),
        "must be of type string",
    );
    let names: Vec<String> = (0..100_000).map(|number| format!("p{number}")).collect();
    let required = json!({"type": "object", "required": names});
    refused("required properties", &schema(required), list(json!({}), 50_000), "Required value");
    let twice =
        json!({"type": "object", "required": vec!["a"; 300_000], "properties": {"a": {"type": "integer"}}});
    refused("properties required again", &schema(twice), list(json!({"a": 1}), 10_000), "takes too long");
    for junctor in ["anyOf", "oneOf", "allOf"] {
        let alternatives: Vec<Value> = (0..20_000).map(|number| json!({"minimum": number + 7})).collect();
        let numbers = json!({"type": "integer", junctor: alternatives});
        refused(junctor, &schema(numbers), list(json!(1), 100_000), "");
    }
    let mut nested = json!({"minimum": 7});
    for _ in 0..60 {
        nested = json!({"anyOf": [nested, {"minimum": 8}, {"maximum": 0}]});
    }
    nested["type"] = json!("integer");
    refused(
        "nested alternatives",
        &schema(nested),
        list(json!(1), 10_000),
        "must validate at least one schema",
    );
    let map =
        json!({"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}});
    let map = StructuralSchema::new(&json!({"type": "object", "properties": {"v": map}})).unwrap();
    let long = json!({"v": {("k".repeat(MIB)): vec![json!(1); 100_000]}});
    refused("values below a long key", &map, long, "must be of type string");
    let unknown =
        json!({"type": "object", "additionalProperties": {"type": "array", "items": {"type": "object"}}});
    let unknown = StructuralSchema::new(&json!({"type": "object", "properties": {"v": unknown}})).unwrap();
    let mut below = json!({"v": {("k".repeat(MIB)): vec![json!({"a": 1}); 50_000]}});
    let paths = check("unknown fields below a long key", || {
        unknown.coerce(&mut below, InvalidMetadata::Drop).unwrap()
    });
    assert!(!paths.is_empty());
    let keys: Vec<String> = (0..10_000).map(|number| format!("k{number}")).collect();
    let properties: Map = keys.iter().map(|key| (key.clone(), json!({"type": "integer"}))).collect();
    let keyed = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys,
        "items": {"type": "object", "properties": properties}});
    let keyed = StructuralSchema::new(&json!({"type": "object", "properties": {"v": keyed}})).unwrap();
    refused("keys that no item has", &keyed, list(json!({}), 50_000), "takes too long");
    expensive_values();
    patterns();
}

/// Patterns that compare each character with all of their positions, and one that does not.
fn patterns() {
    let pattern = |pattern: &str| schema(json!({"type": "string", "pattern": pattern}));
    let many = pattern("^(a|b)*a(a|b){500}$");
    refused("a heavy pattern", &many, list(json!("ab".repeat(1_400_000)), 1), "takes too long");
    let shorts = list(json!("a".repeat(900)), 3000);
    refused("a heavy pattern of short texts", &pattern("^(a?){900}a{900}$"), shorts, "takes too long");
    let mut state = 1_u32;
    let random = (0..500_000).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if state >> 31 == 0 { 'a' } else { 'b' }
    });
    let random = list(json!(random.collect::<String>()), 1);
    refused("a pattern with very many states", &pattern("(a|b)*a(a|b){200}c"), random, "takes too long");
    let groups = "([0-9a-fA-F]{1,4}:)";
    let rests = (1..8).map(|last| format!("{groups}{{1,{last}}}(:[0-9a-fA-F]{{1,4}}){{1,{}}}", 8 - last));
    let address = format!("^({groups}{{7}}[0-9a-fA-F]{{1,4}}|{})$", rests.collect::<Vec<_>>().join("|"));
    let addresses = (0..50_000)
        .map(|number| json!(format!("2001:db8:{:x}:{:x}::{:x}", number % 7, number, number % 999)));
    let errors =
        check("addresses", || write(&pattern(&address), json!({"v": addresses.collect::<Vec<_>>()}), None));
    assert!(errors.is_empty(), "{}", told(&errors));
}

/// The schema of an object whose member `v` has this schema.
fn schema_of(of_v: Value) -> StructuralSchema {
    StructuralSchema::new(&json!({"type": "object", "properties": {"v": of_v}})).unwrap()
}

/// Large values that each of very many alternatives reads.
fn expensive_values() {
    let alternatives = |alternative: Value, ty: &str| {
        let mut schema = json!({"type": ty, "anyOf": vec![alternative; 50_000]});
        if ty == "object" {
            schema["x-kubernetes-preserve-unknown-fields"] = json!(true);
        }
        schema_of(schema)
    };
    let text = json!({"v": "5".repeat(2_800_000)});
    for format in ["byte", "creditcard", "date-time", "duration", "email", "hostname", "isbn", "uri"] {
        let schema = alternatives(json!({"format": format, "maxLength": 1}), "string");
        refused(format, &schema, text.clone(), "takes too long");
    }
    refused("lengths", &alternatives(json!({"maxLength": 1}), "string"), text, "takes too long");
    let members: Map = (0..200_000).map(|number| (format!("k{number}"), json!(1))).collect();
    let properties = json!({"properties": {"p": {}}, "required": ["p"]});
    refused("members", &alternatives(properties, "object"), json!({"v": members}), "takes too long");
    let list = json!({"v": vec![1; 500_000]});
    for count in [1, 40] {
        let schema = alternatives(json!({"enum": vec![json!([1]); count]}), "array");
        refused("a long list among the allowed values", &schema, list.clone(), "takes too long");
    }
    let item = |member: Value| {
        json!({"type": "array", "x-kubernetes-list-type": "set", "items": {
            "type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": member},
        }})
    };
    let (mut sets, mut object) = (json!({"type": "string"}), json!("c".repeat(2_800_000)));
    for _ in 0..100 {
        (sets, object) = (item(sets), json!([{"a": object}]));
    }
    refused("sets in sets", &schema_of(sets), json!({"v": object}), "takes too long");
}

fn defaults() {
    let large =
        json!({"type": "object", "properties": {"d": {"type": "string", "default": "x".repeat(100_000)}}});
    refused("a large default in each item", &schema(large), list(json!({}), 30_000), "add too much");
    let mut nested = json!({"type": "object"});
    for _ in 0..12 {
        nested = json!({"type": "object", "properties": {
            "d": {"type": "array", "items": nested, "default": vec![json!({}); 100]}}});
    }
    refused("defaults in defaults", &schema(nested), list(json!({}), 1), "add too much");
    let small = json!({"type": "object", "properties": {"d": {"type": "integer", "default": 1}}});
    assert!(check("small defaults", || write(&schema(small), list(json!({}), 20_000), None)).is_empty());
}

fn rules() {
    let rules = |rules: Vec<Value>| schema(json!({"type": "object", "x-kubernetes-validations": rules}));
    let cheap = vec![json!({"rule": "true"}); 5_000];
    refused("rules that cost nothing", &rules(cheap), list(json!({}), 100_000), "running out of cost budget");
    let told = vec![json!({"rule": "false", "message": "m".repeat(100_000)})];
    refused("long messages", &rules(told), list(json!({}), 100_000), "mmm");
    let wrong = vec![json!({"rule": format!("self.{}", "x".repeat(10_000))})];
    refused("a rule that cannot be compiled", &rules(wrong), list(json!({}), 100_000), "rule compile error");
    let on_text = |rule: &str| {
        let text = json!({"type": "string", "x-kubernetes-validations": [{"rule": rule}]});
        StructuralSchema::new(&json!({"type": "object", "properties": {"v": text}})).unwrap()
    };
    let text = |length: usize| json!({"v": "ab".repeat(length / 2)});
    for rule in [
        r"lists.range(10000).all(i, !'x'.matches('\\pL{200}' + string(i)))",
        "self.findAll('(a|b)*c|a|b').size() > 0",
        "self.matches('^(a|b)*a(a|b){500}$')",
        "lists.range(100000).all(i, size(self) > 0)",
        "lists.range(100000).all(i, self.charAt(i) != 'c')",
        "lists.range(100000).all(i, 'a'.replace('a', self) != 'c')",
        "lists.range(100000).all(i, '%s%s%s%s'.format([self, self, self, self]) != 'c')",
        "lists.range(1000).all(i, [self, self, self, self] == [self, self, self, self])",
        "lists.range(100000).all(i, lists.range(100).distinct().size() == 100)",
        "self.split('').size() > 0 && lists.range(10).all(i, self.split('').sort().size() > 0)",
    ] {
        refused(rule, &on_text(rule), text(MIB), "no further validation rules will be run");
    }
}

/// Validates a definition and returns its errors.
fn define(of_schema: Value, more: impl FnOnce(&mut Value)) -> ErrorList {
    let mut definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.g.io"},
        "spec": {"group": "g.io", "scope": "Cluster",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": of_schema}}],
            "conversion": {"strategy": "None"}},
        "status": {"storedVersions": ["v1"]}});
    more(&mut definition);
    let resource = resources().remove(0);
    let registry = MemoryRegistry::default();
    with_context(&registry, "", false, |context| resource.strategy.validate(context, &definition))
}

fn definition(what: &str, of_schema: Value, expected: &str) {
    let message = check(what, || told(&define(of_schema, |_| {})));
    let shown: String = message.chars().take(300).collect();
    assert!(message.contains(expected), "{what}: {shown}");
}

fn in_object(properties: impl IntoIterator<Item = (String, Value)>) -> Value {
    json!({"type": "object", "properties": properties.into_iter().collect::<Map>()})
}

fn definitions() {
    let keyed = |keys: Value, properties: Value| {
        in_object([(
            "l".to_owned(),
            json!({"type": "array", "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": keys, "items": properties}),
        )])
    };
    let item = json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}});
    definition(
        "keys that come again",
        keyed(json!(vec!["a"; 100_000]), item.clone()),
        "must not contain duplicate entries",
    );
    definition(
        "keys that are no properties",
        keyed(json!(numbers_as_text(50_000)), item),
        "entries must all be names",
    );
    let below = |count: usize| in_object((0..count).map(|number| (format!("p{number}"), json!({}))));
    definition("errors below a long name", in_object([("k".repeat(MIB), below(30_000))]), "Required value");
    let patterns = |pattern: &str, count: usize| {
        let pattern = |number: usize| json!({"type": "string", "pattern": format!("{pattern}{number}")});
        in_object((0..count).map(|number| (format!("p{number}"), pattern(number))))
    };
    definition("heavy patterns", patterns(r"\pL{200}", 10_000), "take too long to compile");
    let ruled = |rule: &dyn Fn(usize) -> Value, count: usize| json!({"type": "object", "x-kubernetes-validations": (0..count).map(rule).collect::<Vec<_>>()});
    let matching = |number: usize| json!({"rule": format!(r"'a'.matches('\\pL{{100}}{number}')")});
    definition("patterns in rules", ruled(&matching, 5_000), "take too long to compile");
    let many = |number: usize| json!({"rule": format!(r"'a'.matches('\\pL{{100}}{number}')").as_str().to_owned() + &r" || 'a'.find('\\pL{50}') == ''".repeat(1_000)});
    definition("many patterns in a rule", ruled(&many, 3), "");
    let wrong = |number: usize| json!({"rule": format!("{number} == 0 && {}", "x && ".repeat(1_000) + "x")});
    definition("rules with many mistakes", ruled(&wrong, 300), "undeclared reference");
    let mut nested = ruled(&|number| json!({"rule": format!("{number} == {number}")}), 2_000);
    nested["default"] = json!({});
    for _ in 0..30 {
        nested = json!({"type": "object", "properties": {"p": nested}, "default": {}});
    }
    definition("rules below many defaults", in_object([("p".to_owned(), nested)]), "");
    let mut alternatives: Vec<Value> = (0..1_500).map(|number| json!({"minimum": number + 7})).collect();
    alternatives.push(json!({"minimum": 1}));
    let checked = json!({"type": "array", "default": vec![1; 5_000], "items": {"type": "integer", "anyOf": alternatives}});
    let checked = in_object((0..40).map(|number| (format!("p{number}"), checked.clone())));
    definition("defaults with many alternatives", checked, "takes too long");
    let names: Vec<String> = (0..20_000).map(|number| format!("p{number}")).collect();
    let mut required = in_object(names.iter().map(|name| (name.clone(), json!({"type": "integer"}))));
    required["required"] = json!(names);
    required["x-kubernetes-validations"] = json!([{"rule": "self.p1 == 1"}]);
    definition("required properties of a rule", in_object([("p".to_owned(), required)]), "");
    let versions = |definition: &mut Value| {
        let version = |number: usize| {
            json!({"name": format!("v{number}"), "served": true, "storage": number == 1,
            "subresources": {"status": {}}, "schema": {"openAPIV3Schema": {"type": "object", "description": number.to_string()}}})
        };
        definition["spec"]["versions"] = (1..1_000).map(version).collect();
        let stored: Vec<String> = (1..10_000)
            .map(|number| format!("v{number}"))
            .chain((1..20_000).map(|number| format!("w{number}")))
            .collect();
        definition["status"]["storedVersions"] = json!(stored);
    };
    let message = check("versions", || told(&define(json!({"type": "object"}), versions)));
    assert!(message.contains("missing from spec.versions"), "{message:.300}");
    let many = |definition: &mut Value| {
        let version =
            |number: usize| json!({"name": format!("v{number}"), "served": true, "storage": number == 1});
        definition["spec"]["versions"] = (0..50_000).map(version).collect();
    };
    let mut costly =
        json!({"type": "array", "maxItems": 400, "default": vec![1; 400], "items": {"type": "integer"}});
    costly["x-kubernetes-validations"] = json!([{"rule": "self.all(a, self.all(b, a == b))"}]);
    let versions = |definition: &mut Value| {
        // Equal schemas are checked once.
        let version = |number: usize| {
            let mut schema = in_object([("l".to_owned(), costly.clone())]);
            schema["description"] = json!(number.to_string());
            json!({"name": format!("v{number}"), "served": true, "storage": number == 1,
                "schema": {"openAPIV3Schema": schema}})
        };
        definition["spec"]["versions"] = (1..500).map(version).collect();
    };
    let many_defaults = in_object((0..500).map(|number| (format!("p{number}"), costly.clone())));
    definition("rules on very many defaults", many_defaults, "cost budget");
    let message = check("rules on the defaults of many versions", || {
        told(&define(json!({"type": "object"}), versions))
    });
    assert!(message.contains("cost budget"), "{message:.300}");
    let message = check("very many versions", || told(&define(json!({"type": "object"}), many)));
    assert!(message.contains("Too many: 50000: must have at most 1000 items"), "{message:.300}");
    let reviews = |definition: &mut Value| {
        let versions: Vec<String> = (0..100_000).map(|number| format!("v{number}")).collect();
        definition["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
            "clientConfig": {"url": "https://a.example.com/"}, "conversionReviewVersions": versions}});
    };
    check("versions of reviews", || told(&define(json!({"type": "object"}), reviews)));
    let columns_of = |definition: &mut Value| {
        let column =
            |number: usize| json!({"name": format!("c{number}"), "type": "string", "jsonPath": ".a"});
        definition["spec"]["versions"][0]["additionalPrinterColumns"] = (0..5_000).map(column).collect();
    };
    let message = check("columns", || told(&define(json!({"type": "object"}), columns_of)));
    assert!(message.contains("Too many: 5000: must have at most 256 items"), "{message:.300}");
}

fn numbers_as_text(count: usize) -> Vec<String> {
    (0..count).map(|number| number.to_string()).collect()
}

/// The cost of a row is bounded for all columns.
fn rows() {
    let column = |path: &str| json!({"name": "C", "type": "string", "jsonPath": path});
    let deep = (0..250).map(|number| column(&format!("..a[{number}]..b"))).collect::<Vec<_>>();
    let table = columns(&json!({"additionalPrinterColumns": deep}));
    let object = json!({"metadata": {"name": "n"}, "l": vec![json!({"a": [{"c": 1}, {"c": 2}]}); 3_000]});
    let now = "2026-01-01T00:00:00Z".parse().unwrap();
    let cells = check("columns over everything", || table.cells(&object, now));
    assert_eq!(cells.len(), 251);
}

/// A single test, since parallel tests would allocate too.
#[test]
fn costs_are_bounded() {
    values();
    defaults();
    rules();
    definitions();
    rows();
}
