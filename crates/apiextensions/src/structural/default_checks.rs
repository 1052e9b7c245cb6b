//! Validates defaults by the schema when a definition is written.

use super::arena::Arena;
use super::effort::Effort;
use super::node::{Flags, Node};
use super::prune::prune_value;
use super::rules::{BUDGET, CompileEffort, CompiledRules};
use super::{InvalidMetadata, StructuralSchema, object_meta, values};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value};
use std::cell::Cell;

/// A position in a schema that may have a default.
#[derive(Clone, Copy)]
pub(crate) struct Place<'s> {
    schema: &'s Arena,
    node: &'s Node,
    /// Whether objects at this position have apiVersion, kind and metadata: the root, and embedded resources.
    is_resource: bool,
}

impl StructuralSchema {
    /// The cost budget of rules on all defaults of a definition.
    pub(crate) const DEFAULTS_BUDGET: u64 = BUDGET;

    /// Runs the rules on a default at the position of this schema, which is that of a resource or not. `budget` is what remains for all defaults of the
    /// definition; `None` once it was exhausted.
    pub(crate) fn check_rules(
        &self,
        default: &Value,
        is_resource: bool,
        path: &FieldPath,
        budget: &Cell<Option<u64>>,
        effort: &CompileEffort,
    ) -> ErrorList {
        let rules = self.compiled_rules.get_or_init(|| CompiledRules::new(&self.arena, is_resource, effort));
        rules.validate_default(&self.arena, default, path, budget)
    }

    /// The root position, which is a resource.
    pub(crate) fn place(&self) -> Place<'_> {
        Place { schema: &self.arena, node: self.arena.root_node(), is_resource: true }
    }
}

impl<'s> Place<'s> {
    fn at(self, node: &'s Node) -> Place<'s> {
        Place { schema: self.schema, node, is_resource: node.flags.has(Flags::EMBEDDED_RESOURCE) }
    }

    /// The position of a property.
    pub(crate) fn property(self, name: &str) -> Option<Place<'s>> {
        self.schema.property(self.node, name).map(|node| self.at(node))
    }

    /// The position of items.
    pub(crate) fn items(self) -> Option<Place<'s>> {
        self.schema.items(self.node).map(|node| self.at(node))
    }

    /// The position of additional properties.
    pub(crate) fn additional(self) -> Option<Place<'s>> {
        self.schema.additional(self.node).map(|node| self.at(node))
    }

    /// Whether objects at this position have apiVersion, kind and metadata.
    pub(crate) fn is_resource(self) -> bool {
        self.is_resource
    }

    /// Whether the schema has all of the value's fields.
    pub(crate) fn is_pruned(self, value: &Value) -> bool {
        let mut pruned = value.clone();
        prune_value(self.schema, self.node, &mut pruned, self.is_resource);
        pruned == *value
    }

    /// Decodes the metadata of the resources in a value by the fields that metadata has.
    pub(crate) fn coerce(self, value: &mut Value) {
        // Validation reports metadata that does not decode.
        let _ = object_meta::coerce_below(self.schema, self.node, value, InvalidMetadata::Refuse);
    }

    /// Whether there is an embedded resource at this position or below it.
    pub(crate) fn has_embedded(self) -> bool {
        self.node.flags.has(Flags::BELOW_EMBEDDED)
    }

    /// Validates type and metadata of the resources in a value, including the value itself.
    ///
    /// # Errors
    /// When metadata does not decode.
    pub(crate) fn check_resources(self, value: &Value, path: &FieldPath) -> Result<ErrorList, FieldError> {
        let mut coerced = value.clone();
        let prefixed = |error: FieldError| FieldError { field: below(path, &error.field), ..error };
        object_meta::coerce_resources(self.schema, self.node, &mut coerced, self.is_resource)
            .map_err(prefixed)?;
        let errors = object_meta::validate_resources(self.schema, self.node, &coerced, self.is_resource);
        Ok(errors.into_iter().map(prefixed).collect())
    }

    /// Validates a value by the schema, with the effort of all defaults of the definition.
    pub(crate) fn check_values(self, value: &Value, path: &FieldPath, effort: &Effort) -> ErrorList {
        values::validate_default(self.schema, self.node, value, path, effort)
    }
}

fn below(path: &FieldPath, field: &FieldPath) -> FieldPath {
    match field.as_str() {
        "" => path.clone(),
        index if index.starts_with('[') || path.as_str().is_empty() => {
            FieldPath::new(&format!("{}{index}", path.as_str()))
        }
        member => path.child(member),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn the_path_of_a_rule_follows_that_of_the_default() {
        let check = |schema: Value, default: Value, expected: &str| {
            let schema = StructuralSchema::new(&schema).unwrap();
            let budget = Cell::new(Some(StructuralSchema::DEFAULTS_BUDGET));
            let path = FieldPath::new("spec.default");
            let errors = schema.check_rules(&default, false, &path, &budget, &CompileEffort::new());
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(errors, [expected]);
        };
        let rule = |path: &str| json!([{"rule": "false", "message": "m", "fieldPath": path}]);
        let map = |path: &str| json!({"type": "object", "additionalProperties": {"type": "integer"}, "x-kubernetes-validations": rule(path)});
        check(map(""), json!({}), "spec.default: Invalid value: m");
        check(map("['k']"), json!({}), "spec.default.[k]: Invalid value: m");
        let list = json!({"type": "array", "items": map("")});
        check(list, json!([{}]), "spec.default[0]: Invalid value: m");
        let object = json!({"type": "object", "properties": {"a": map(".k")}});
        check(object, json!({"a": {}}), "spec.default.a.[k]: Invalid value: m");
    }
}
