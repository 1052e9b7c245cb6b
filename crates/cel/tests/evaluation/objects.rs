//! Objects with a schema: the values of fields, lists and formats, and the effect of the list type on `==` and `+`.

use pintle_cel::types::{ObjectTypes, Type};
use pintle_cel::{Activation, Environment, ListType, Schema, SchemaKind, Value};
use pintle_machinery::{Value as Json, json};
use std::sync::Arc;

/// A schema of explicit nodes.
#[derive(Debug, Clone)]
struct Node {
    kind: SchemaKind,
    nullable: bool,
    properties: Vec<(&'static str, Node)>,
    /// The schema of items, and of the values of maps.
    items: Option<Box<Node>>,
    list_type: &'static str,
    keys: Vec<String>,
}

impl Schema for Node {
    fn kind(&self) -> SchemaKind {
        self.kind
    }

    fn nullable(&self) -> bool {
        self.nullable
    }

    fn property(&self, name: &str) -> Option<&dyn Schema> {
        match self.kind {
            SchemaKind::Map => self.items(),
            _ => {
                self.properties.iter().find(|(known, _)| *known == name).map(|(_, node)| node as &dyn Schema)
            }
        }
    }

    fn items(&self) -> Option<&dyn Schema> {
        self.items.as_deref().map(|node| node as &dyn Schema)
    }

    fn list_type(&self) -> ListType<'_> {
        match self.list_type {
            "set" => ListType::Set,
            "map" => ListType::Map(&self.keys),
            _ => ListType::Atomic,
        }
    }
}

fn of(kind: SchemaKind) -> Node {
    Node { kind, nullable: false, properties: Vec::new(), items: None, list_type: "", keys: Vec::new() }
}

fn object(properties: Vec<(&'static str, Node)>) -> Node {
    Node { properties, ..of(SchemaKind::Object) }
}

fn list(items: Node, list_type: &'static str) -> Node {
    Node { items: Some(Box::new(items)), list_type, ..of(SchemaKind::Array) }
}

fn schema() -> Node {
    let item = object(vec![("k", of(SchemaKind::String)), ("v", of(SchemaKind::Integer))]);
    let by_namespace = object(vec![("namespace", of(SchemaKind::String))]);
    object(vec![
        ("s", of(SchemaKind::String)),
        ("n", of(SchemaKind::Integer)),
        ("f", of(SchemaKind::Number)),
        ("b", of(SchemaKind::Boolean)),
        ("date", of(SchemaKind::Date)),
        ("time", of(SchemaKind::DateTime)),
        ("dur", of(SchemaKind::Duration)),
        ("bytes", of(SchemaKind::Byte)),
        ("ios", of(SchemaKind::IntOrString)),
        ("x-y", of(SchemaKind::String)),
        ("namespace", of(SchemaKind::String)),
        ("nul", Node { nullable: true, ..of(SchemaKind::String) }),
        ("nuls", list(Node { nullable: true, ..of(SchemaKind::String) }, "")),
        ("strict", list(of(SchemaKind::String), "")),
        ("any", of(SchemaKind::Unknown)),
        ("m", Node { items: Some(Box::new(of(SchemaKind::Integer))), ..of(SchemaKind::Map) }),
        ("atomic", list(of(SchemaKind::String), "atomic")),
        ("set", list(of(SchemaKind::String), "set")),
        ("dates", list(of(SchemaKind::Date), "set")),
        ("items", Node { keys: vec!["k".to_owned()], ..list(item, "map") }),
        ("spaces", Node { keys: vec!["namespace".to_owned()], ..list(by_namespace, "map") }),
    ])
}

fn evaluate(expression: &str, object: &Json, old: &Json) -> String {
    let schema = schema();
    let environment = Environment::new().with_variable("self", Type::Dyn).with_variable("oldSelf", Type::Dyn);
    let program = environment.compile(expression).unwrap_or_else(|error| panic!("{expression}: {error}"));
    let see = |json| Value::from_object(json, &schema).expect("an object");
    let activation = Activation::new().with("self", see(object)).with("oldSelf", see(old));
    match program.evaluate(&activation, &mut { 1_000_000 }) {
        Ok(value) => match value.as_bool() {
            Some(value) => value.to_string(),
            None => format!("a {}", value.type_name()),
        },
        Err(error) => error.to_string(),
    }
}

#[test]
fn data_is_what_its_schema_says() {
    let object = json!({
        "s": "text", "n": 5, "f": 2, "b": true, "date": "2020-02-03", "time": "2020-02-03T04:05:06+01:00",
        "dur": "1h30m", "bytes": "aGVsbG8=", "ios": "50%", "x-y": "dashed", "namespace": "ns", "nul": null,
        "nuls": ["a", null], "strict": ["a", null], "m": {"a": 1, "x-y": 2}, "undeclared": 1
    });
    let rows = [
        ("self.s == 'text' && type(self.s) == string", "true"),
        ("self.n == 5 && type(self.n) == int", "true"),
        ("self.f == 2.0 && type(self.f) == double", "true"),
        ("self.b", "true"),
        ("self.date == timestamp('2020-02-03T00:00:00Z')", "true"),
        ("self.time == timestamp('2020-02-03T03:05:06Z') && self.time.getHours() == 3", "true"),
        ("string(self.time) == '2020-02-03T04:05:06+01:00'", "true"),
        ("self.dur == duration('90m')", "true"),
        ("self.bytes == b'hello'", "true"),
        ("type(self.ios) == string && self.ios.endsWith('%')", "true"),
        ("self.x__dash__y == 'dashed' && self.__namespace__ == 'ns'", "true"),
        ("has(self.nul)", "false"),
        ("self.nul == null", "no such key: nul"),
        ("self.nuls[1] == null && self.nuls.size() == 2", "true"),
        ("self.strict[1] == 'a'", "invalid data, got null for schema with nullable=false"),
        ("self.strict.exists(x, x == 'a')", "true"),
        ("has(self.undeclared)", "false"),
        ("self.undeclared == 1", "no such key: undeclared"),
        ("has(self.absent)", "false"),
        ("self.m.a == 1 && self.m['x-y'] == 2 && self.m.all(k, self.m[k] > 0)", "true"),
        ("self.m[1]", "no such overload"),
        ("self.m == {'a': 1, 'x-y': 2}", "true"),
        ("self.m == oldSelf.m && self.nuls == oldSelf.nuls", "true"),
        // An item that cannot be converted cannot be compared.
        ("self == oldSelf", "invalid data, got null for schema with nullable=false"),
        ("type(self) == map", "true"),
        ("dyn(self.strict) == dyn(1)", "no such overload"),
        ("dyn(self.strict) != dyn(1)", "true"),
        ("dyn(1) == dyn(self.strict)", "false"),
        ("'a' in self.nuls && !('b' in self.nuls)", "true"),
    ];
    for (expression, wanted) in rows {
        assert_eq!(evaluate(expression, &object, &object.clone()), wanted, "{expression}");
    }
}

#[test]
fn data_that_does_not_fit_is_an_error_of_the_expression_that_reads_it() {
    let rows = [
        ("s", json!(1), "invalid data, expected string, got int64"),
        ("n", json!(1.5), "invalid data, expected int, got float64"),
        ("n", json!("1"), "invalid data, expected int, got string"),
        ("f", json!("1"), "invalid data, expected float, got string"),
        ("b", json!([]), "invalid data, expected bool, got []interface {}"),
        ("m", json!([]), "invalid data, expected a map for the provided schema with type=object"),
        ("atomic", json!({}), "invalid data, expected an array for the provided schema with type=array"),
        ("ios", json!(1.5), "invalid data, expected XIntOrString value to be either a string or integer"),
        ("bytes", json!("/w=="), "Invalid byte formatted string /w==: illegal base64 data at input byte 0"),
        ("dur", json!("soon"), "Invalid duration soon: unable to parse soon as duration"),
        ("s", json!({}), "invalid data, expected string, got map[string]interface {}"),
    ];
    for (field, value, wanted) in rows {
        let object = json!({field: value});
        assert_eq!(evaluate(&format!("self.{field}"), &object, &object.clone()), wanted, "{object}");
    }
}

#[test]
fn list_types_decide_equality() {
    let rows = [
        ("atomic", json!(["a", "b"]), json!(["a", "b"]), "true"),
        ("atomic", json!(["a", "b"]), json!(["b", "a"]), "false"),
        ("set", json!(["a", "b"]), json!(["b", "a"]), "true"),
        ("set", json!(["a", "b"]), json!(["a", "c"]), "false"),
        ("set", json!(["a", "b"]), json!(["a"]), "false"),
        // Sets compare the JSON values, other lists the converted values.
        ("dates", json!(["2020-01-01"]), json!(["2020-01-01"]), "false"),
        ("items", json!([{"k": "a", "v": 1}, {"k": "b"}]), json!([{"k": "b"}, {"k": "a", "v": 1}]), "true"),
        ("items", json!([{"k": "a", "v": 1}]), json!([{"k": "a", "v": 2}]), "false"),
        ("items", json!([{"k": "a"}]), json!([{"k": "b"}]), "false"),
        // Keys whose names are escaped do not distinguish items.
        ("spaces", json!([{"namespace": "a"}]), json!([{"namespace": "a"}]), "true"),
        (
            "spaces",
            json!([{"namespace": "a"}, {"namespace": "b"}]),
            json!([{"namespace": "a"}, {"namespace": "b"}]),
            "false",
        ),
        ("any", json!({"a": [1, {"b": null}]}), json!({"a": [1, {"b": null}]}), "true"),
        ("m", json!({"a": 1}), json!({"a": 2}), "false"),
    ];
    for (field, value, old, wanted) in rows {
        let (object, old) = (json!({field: value}), json!({field: old}));
        // Data without a schema can be compared only as a whole object.
        let expression = if field == "any" {
            "self == oldSelf".to_owned()
        } else {
            format!("self.{field} == oldSelf.{field}")
        };
        assert_eq!(evaluate(&expression, &object, &old), wanted, "{object} {old}");
    }
    // Literals are ordered lists in every comparison.
    let object = json!({"set": ["b", "a"]});
    assert_eq!(evaluate("self.set == ['a', 'b']", &object, &object.clone()), "true");
    assert_eq!(evaluate("['a', 'b'] == self.set", &object, &object.clone()), "false");
}

#[test]
fn list_types_decide_what_adding_means() {
    let object = json!({
        "atomic": ["a", "b"], "set": ["a", "b"], "items": [{"k": "a", "v": 1}, {"k": "b", "v": 2}],
    });
    let old = json!({
        "atomic": ["b", "c"], "set": ["b", "c"], "items": [{"k": "b", "v": 3}, {"k": "c", "v": 4}],
    });
    let rows = [
        ("(self.atomic + oldSelf.atomic).size() == 4", "true"),
        ("['a', 'b', 'c'] == self.set + oldSelf.set", "true"),
        ("self.set + oldSelf.set == ['c', 'b', 'a']", "true"),
        ("(self.items + oldSelf.items).map(x, x.v) == [1, 3, 4]", "true"),
        ("self.items + oldSelf.items == oldSelf.items + self.items", "false"),
        ("self.items + oldSelf.items == [self.items[0]] + oldSelf.items", "true"),
    ];
    for (expression, wanted) in rows {
        assert_eq!(evaluate(expression, &object, &old), wanted, "{expression}");
    }
}

#[test]
fn fields_of_declared_types_are_resolved_by_name() {
    let mut types = ObjectTypes::default();
    types.insert("object", [("n".into(), Type::Int)]);
    let environment =
        Environment::new().with_variable("self", Type::object("object")).with_types(Arc::new(types));
    let program = environment.compile("self.n + 1 == 6 && has(self.n)").expect("it compiles");
    let (schema, object) = (schema(), json!({"n": 5}));
    let activation = Activation::new().with("self", Value::from_object(&object, &schema).expect("an object"));
    let value = program.evaluate(&activation, &mut { 100 }).expect("it evaluates");
    assert_eq!(value.as_bool(), Some(true));
}
