//! The validation rules that apply to a write.

use crate::structural::rules::PreexistingExpressions;
use std::collections::HashSet;

/// The rules that depend on the stored definition. The names state the requirement or permission.
#[derive(Debug)]
pub(super) struct ValidationOptions {
    pub(super) require_recognized_review_version: bool,
    pub(super) require_immutable_names: bool,
    pub(super) require_schemas: bool,
    pub(super) require_valid_types: bool,
    pub(super) require_structural_schemas: bool,
    pub(super) require_pruned_defaults: bool,
    pub(super) require_atomic_set_items: bool,
    pub(super) require_map_list_keys: bool,
    /// An invalid bundle prevents a definition from being established, and is rejected once it is established.
    pub(super) allow_invalid_ca_bundle: bool,
    /// The versions with this permission; "" stands for the definition as a whole.
    pub(super) allow_too_many_selectable_fields: HashSet<String>,
    /// The versions whose rules are not checked for their cost again.
    pub(super) versions_with_unchanged_schemas: HashSet<String>,
    /// The rules that may use functions that new ones may not.
    pub(super) preexisting_expressions: PreexistingExpressions,
}

impl ValidationOptions {
    /// The options for a new definition.
    pub(super) fn for_create() -> ValidationOptions {
        ValidationOptions {
            require_recognized_review_version: true,
            require_immutable_names: false,
            require_schemas: true,
            require_valid_types: true,
            require_structural_schemas: true,
            require_pruned_defaults: true,
            require_atomic_set_items: true,
            require_map_list_keys: true,
            allow_invalid_ca_bundle: true,
            allow_too_many_selectable_fields: HashSet::new(),
            versions_with_unchanged_schemas: HashSet::new(),
            preexisting_expressions: PreexistingExpressions::none(),
        }
    }
}
