//! The types of mutations: objects that an expression constructs, and operations of JSON patches
//! (<https://kubernetes.io/docs/reference/access-authn-authz/mutating-admission-policy/>).
//!
//! `Object` and every name that begins with `Object.` are types, with any field of any type: `Object.spec` is the type of
//! the field `spec` of the whole object. The kind of the object is known only at run time.

use crate::types::{Type, TypeProvider};
use std::sync::Arc;

/// The name of the type of whole objects.
pub const OBJECT: &str = "Object";
/// The name of the type of operations of JSON patches.
pub const JSON_PATCH: &str = "JSONPatch";

/// The types of mutations, in front of other types.
#[derive(Debug)]
pub struct MutationTypes {
    others: Arc<dyn TypeProvider>,
}

impl MutationTypes {
    /// The types of mutations and these.
    pub fn new(others: Arc<dyn TypeProvider>) -> MutationTypes {
        MutationTypes { others }
    }
}

impl TypeProvider for MutationTypes {
    fn has_type(&self, name: &str) -> bool {
        is_mutation_type(name) || self.others.has_type(name)
    }

    fn field(&self, type_name: &str, field: &str) -> Option<Type> {
        match type_name {
            JSON_PATCH => Some(match field {
                "op" | "path" | "from" => Type::String,
                "value" => Type::Dyn,
                // The reference has all other fields, too, with a type that no value has and that has no name.
                _ => Type::object(""),
            }),
            name if is_mutation_type(name) => Some(Type::Dyn),
            name => self.others.field(name, field),
        }
    }

    fn is_constructible(&self, type_name: &str) -> bool {
        is_mutation_type(type_name) || self.others.is_constructible(type_name)
    }
}

fn is_mutation_type(name: &str) -> bool {
    name == JSON_PATCH
        || name.strip_prefix(OBJECT).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::declarations::Library;
    use crate::types::ObjectTypes;
    use crate::{Activation, Environment, Value};

    fn environment() -> Environment {
        Environment::new()
            .with_variable("object", Type::Dyn)
            .with_library(Library::JsonPatch)
            .with_types(Arc::new(MutationTypes::new(Arc::new(ObjectTypes::default()))))
    }

    fn with_value(expression: &str, check: impl FnOnce(Result<Value<'_>, crate::EvaluationError>)) {
        let program = environment().compile(expression).expect(expression);
        let object = pintle_machinery::json!({"data": {"a": "b"}, "spec": {"containers": [{"name": "c"}]}});
        let activation = Activation::new().with("object", Value::from_json(&object));
        let mut budget = 10_000;
        check(program.evaluate(&activation, &mut budget));
    }

    #[test]
    fn expressions_with_objects_have_values() {
        for (expression, expected) in [
            ("Object{} == Object{}", true),
            ("Object{} == dyn(Object.spec{})", false),
            ("Object{spec: Object.spec{replicas: 3}} == Object{spec: Object.spec{replicas: 1 + 2}}", true),
            ("Object{intList: [1, 2, 3]}.intList.sum() == 6", true),
            ("Object{?a: optional.none()} == Object{}", true),
            ("Object{?a: object.data.?a}.a == 'b'", true),
            ("Object{}.a == null", true),
            ("has(Object{a: 1}.a) && !has(Object{a: 1}.b)", true),
            ("Object{}.?a.orValue(5) == 5", true),
            ("type(Object.spec{}) == Object.spec", true),
            ("optional.ofNonZeroValue(Object{}).hasValue()", false),
            ("JSONPatch{op: 'add'}.path == '' && !has(JSONPatch{}.op)", true),
            (
                "[JSONPatch{op: 'add'}] + [JSONPatch{op: 'test'}] == [JSONPatch{op: 'add'}, JSONPatch{op: 'test'}]",
                true,
            ),
            ("jsonpatch.escapeKey('a/b~c') == 'a~1b~0c'", true),
        ] {
            with_value(expression, |value| {
                assert_eq!(value.expect(expression).as_bool(), Some(expected), "{expression}");
            });
        }
    }

    #[test]
    fn the_types_of_results_are_known() {
        for (expression, expected) in [
            ("Object{spec: Object.spec{}}", "Object"),
            ("Object.spec{}", "Object.spec"),
            ("true ? Object{} : Object{a: 1}", "Object"),
            ("[JSONPatch{op: 'add'}]", "list(JSONPatch)"),
            ("object.spec.containers.map(c, JSONPatch{op: 'test', value: c.name})", "list(JSONPatch)"),
            ("[]", "list(dyn)"),
        ] {
            let program = environment().compile(expression).expect(expression);
            assert_eq!(program.result_type().to_string(), expected, "{expression}");
        }
    }

    #[test]
    fn wrong_types_are_errors() {
        for (expression, expected) in [
            ("Objct{}", "undeclared reference to 'Objct' (in container '')"),
            ("Objects{}", "undeclared reference to 'Objects' (in container '')"),
            ("JSONPatch{op: 1}", "expected type of field 'op' is 'string' but provided type is 'int'"),
            ("JSONPatch{nope: '/x'}", "expected type of field 'nope' is '' but provided type is 'string'"),
            (
                "jsonpatch.escapeKey(1)",
                "found no matching overload for 'jsonpatch.escapeKey' applied to '(int)'",
            ),
        ] {
            let errors = environment().compile(expression).expect_err(expression);
            assert_eq!(errors.messages(), [expected], "{expression}");
        }
        let errors = Environment::new().compile("Object{}").expect_err("only mutations have the type");
        assert_eq!(errors.messages(), ["undeclared reference to 'Object' (in container '')"]);
    }

    #[test]
    fn the_types_of_nested_objects_follow_their_fields() {
        for (expression, expected) in [
            ("Object{spec: Object.spec{containers: [Object.spec.containers{}]}}", vec![]),
            ("Object{a: {'b': Object.a{}}}", vec![]),
            ("Object{spec: Object.metadata{}}", vec![("Object.metadata", "Object.spec")]),
            (
                "Object{a: [dyn(Object.b{}), dyn(Object.a{c: Object.c{}})]}",
                vec![("Object.b", "Object.a"), ("Object.c", "Object.a.c")],
            ),
        ] {
            with_value(expression, |value| {
                let Ok(Value::Object(object)) = value else { panic!("{expression}") };
                let expected: Vec<_> = expected
                    .into_iter()
                    .map(|(found, wanted)| {
                        format!(
                            "unexpected type name \"{found}\", expected \"{wanted}\", which matches field name path \
                             from root Object type"
                        )
                    })
                    .collect();
                assert_eq!(object.mismatched_types(), Ok(expected), "{expression}");
            });
        }
    }
}
