//! Structural schemas: the parsed form of a version's `openAPIV3Schema`
//! (<https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema>).
//!
//! A [`StructuralSchema`] is parsed once from the definition's tree and shared. It is an arena: nodes that refer to
//! each other by index, names that are slices of one text, rare facts in side tables; descriptions are left out. The
//! nodes form no cycles, so every walk along a schema ends, and [`StructuralSchema::new`] rejects schemas too deep for
//! the stack. Walks follow schema and object together, so their length is bounded by the object.
//!
//! An object passes, in this order, [`StructuralSchema::coerce`] (unknown fields, nulls, metadata of embedded
//! resources), [`StructuralSchema::set_defaults`], [`StructuralSchema::validate`],
//! [`StructuralSchema::validate_rules`].

mod arena;
mod convert;
mod correlated;
mod default_checks;
mod defaults;
mod defaults_weight;
mod effort;
mod enumeration;
mod formats;
mod list_types;
mod node;
mod number;
mod object_meta;
mod path;
mod pattern;
mod prune;
mod read;
pub mod rules;
mod run;
mod values;

use std::sync::{Arc, OnceLock};

use pintle_machinery::{ErrorList, FieldError, FieldPath, Value};
use pintle_schema::Schema;

pub(crate) use default_checks::Place;
pub(crate) use effort::Effort;
pub use node::{ListType, Rule};
pub use object_meta::InvalidMetadata;
pub use pattern::Pattern;

use arena::Arena;
use correlated::Correlated;
use rules::{CompileEffort, CompiledRules, RuleFindings, RuleScope};

/// The schema of one version of a custom resource.
#[derive(Debug)]
pub struct StructuralSchema {
    arena: Arena,
    schema: OnceLock<Arc<Schema>>,
    compiled_rules: OnceLock<CompiledRules>,
}

impl StructuralSchema {
    /// Parses `openAPIV3Schema`. Definitions are validated when they are written, so an error here concerns one that
    /// was stored before the rules existed: it has members that structural schemas must not have, or is too deep.
    ///
    /// Defaults are pruned by the schema itself, as they would be in an object.
    ///
    /// # Errors
    /// The message about the first such member, or about the depth.
    pub fn new(open_api_v3_schema: &Value) -> Result<StructuralSchema, String> {
        let arena = read::read(open_api_v3_schema)?;
        Ok(StructuralSchema { arena, schema: OnceLock::new(), compiled_rules: OnceLock::new() })
    }

    /// The schema in the form of built-in kinds, for codecs, patches, apply and OpenAPI. Built on first use, then
    /// shared.
    ///
    /// The root and embedded resources always have `apiVersion`, `kind` and the built-in `metadata`.
    pub fn schema(&self) -> Arc<Schema> {
        self.schema.get_or_init(|| Arc::new(convert::convert(&self.arena))).clone()
    }

    /// Removes unknown fields and returns their paths, sorted, as field validation reports them. `apiVersion`, `kind`
    /// and `metadata` of the object and of embedded resources are kept unchanged.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        prune::prune(&self.arena, object)
    }

    /// Coerces a decoded or converted object: [`StructuralSchema::prune`], then `null` is removed where it is neither
    /// allowed nor replaced by a default, then the metadata of embedded resources is decoded as `ObjectMeta`. The
    /// object's own metadata is unchanged.
    ///
    /// Returns the paths of unknown fields: those of embedded metadata after the others.
    ///
    /// # Errors
    /// When embedded metadata does not decode and `invalid` is [`InvalidMetadata::Refuse`].
    pub fn coerce(&self, object: &mut Value, invalid: InvalidMetadata) -> Result<Vec<String>, FieldError> {
        let mut unknown = self.prune(object);
        defaults::drop_nulls(&self.arena, object);
        unknown.extend(object_meta::coerce(&self.arena, object, invalid)?);
        Ok(unknown)
    }

    /// Applies defaults to missing fields, recursively. A forbidden `null` counts as missing. Applies none when all
    /// defaults together would take too much memory: such an object is invalid.
    pub fn set_defaults(&self, object: &mut Value) {
        defaults::set_defaults(&self.arena, object);
    }

    /// Validates an object: values, then embedded resources, then lists of type set and map. The resource's strategy
    /// validates the object's own metadata and the `scale` paths; a strategy that reports those errors in between calls
    /// the three parts itself.
    ///
    /// `old` is the object to be replaced: errors in unchanged parts are then ratcheted and not reported.
    pub fn validate(&self, object: &Value, old: Option<&Value>) -> ErrorList {
        let mut errors = self.validate_values(object, old);
        errors.extend(self.validate_embedded_resources(object));
        errors.extend(self.validate_list_types(object, old));
        errors
    }

    /// Validates types, limits, formats, patterns and other restrictions of values.
    pub fn validate_values(&self, object: &Value, old: Option<&Value>) -> ErrorList {
        let root = self.arena.root_node();
        let old = old.map(|old| Correlated::new(&self.arena, root, object, old));
        let mut errors = values::validate(&self.arena, root, object, old.as_ref(), &FieldPath::default());
        errors.extend(defaults_weight::excess(&self.arena, object));
        errors
    }

    /// As [`StructuralSchema::validate_values`], for an update through the `status` subresource: only the status is
    /// validated, and messages treat it as the root.
    pub fn validate_status_values(&self, object: &Value, old: &Value) -> ErrorList {
        fn status(object: &Value) -> Option<&Value> {
            object.as_object()?.get("status")
        }
        let node = self.arena.property(self.arena.root_node(), "status");
        let (Some(value), Some(node)) = (status(object), node) else { return ErrorList::new() };
        let old = status(old).unwrap_or(&Value::Null);
        let old = Correlated::new(&self.arena, node, value, old);
        values::validate(&self.arena, node, value, Some(&old), &FieldPath::new("status"))
    }

    /// Validates type and metadata of embedded resources, on create and update alike.
    pub fn validate_embedded_resources(&self, object: &Value) -> ErrorList {
        object_meta::validate(&self.arena, object)
    }

    /// Validates that lists of type set and map have no duplicates, unless the old object had some.
    pub fn validate_list_types(&self, object: &Value, old: Option<&Value>) -> ErrorList {
        let errors = list_types::validate(&self.arena, object);
        match old {
            Some(old) if !errors.is_empty() && !list_types::validate(&self.arena, old).is_empty() => {
                ErrorList::new()
            }
            _ => errors,
        }
    }

    /// Runs the schema's validation rules (`x-kubernetes-validations`), which are compiled on first use. `preceding`
    /// holds all other errors of the object, including those of its metadata: rules run only on objects with a valid
    /// shape.
    pub fn validate_rules(&self, object: &Value, old: Option<&Value>, preceding: &ErrorList) -> RuleFindings {
        let rules =
            self.compiled_rules.get_or_init(|| CompiledRules::new(&self.arena, true, &CompileEffort::new()));
        rules.validate(&self.arena, object, old, preceding)
    }

    /// The position of whole objects, for the rules of the schema.
    pub(crate) fn rule_scope(&self) -> RuleScope<'_> {
        RuleScope::root(&self.arena)
    }
}
