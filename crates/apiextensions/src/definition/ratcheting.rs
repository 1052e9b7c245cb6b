//! Selects the rules that an update must meet.
//!
//! Validation has become stricter over the years. A definition that an older server accepted may keep parts that would
//! be rejected today (ratcheting), so some rules apply only if the stored definition meets them.

use super::conversion_rules::{has_recognized_review_version, is_invalid_ca_bundle};
use super::options::ValidationOptions;
use super::path::Path;
use super::spec::{Spec, same};
use super::{default_rules, schema_rules, selectable_fields, structural_rules};
use crate::structural::rules::PreexistingExpressions;
use pintle_machinery::{Value, ValueExt};
use std::collections::{HashMap, HashSet};

impl ValidationOptions {
    /// The options for an update of a definition.
    pub(super) fn for_update(definition: &Value, old_definition: &Value) -> ValidationOptions {
        let (new, old) = (Spec::of(definition), Spec::of(old_definition));
        let nowhere = Path::new("");
        let conversion = old.tree.at("conversion");
        let established = is_established(old_definition);
        ValidationOptions {
            require_recognized_review_version: conversion.is_none_or(has_recognized_review_version),
            require_immutable_names: established,
            require_schemas: has_all_schemas(&old),
            require_valid_types: !old.any_schema(schema_rules::has_invalid_type),
            // Schemas must be structural in any case, unless unknown fields are preserved.
            require_structural_schemas: !new.preserves_unknown_fields()
                || !old.schemas().any(structural_rules::is_non_structural),
            require_pruned_defaults: !old.schemas().any(default_rules::has_unpruned_defaults),
            require_atomic_set_items: !old
                .any_schema(|schema| schema_rules::non_atomic_set_items(schema, &nowhere).is_some()),
            require_map_list_keys: !old
                .any_schema(|schema| !schema_rules::map_or_set_items(schema, &nowhere).is_empty()),
            allow_invalid_ca_bundle: !established || conversion.is_some_and(is_invalid_ca_bundle),
            allow_too_many_selectable_fields: selectable_fields::too_many_unchanged(&new, &old),
            versions_with_unchanged_schemas: unchanged_schemas(&new, &old),
            preexisting_expressions: preexisting_expressions(&old),
        }
    }
}

fn is_established(definition: &Value) -> bool {
    let is =
        |condition: &Value| condition.str_at("type") == "Established" && condition.str_at("status") == "True";
    definition.items_at("status.conditions").iter().any(is)
}

fn has_all_schemas(spec: &Spec<'_>) -> bool {
    spec.common.schema().is_some() || spec.versions.iter().all(|version| version.own.schema().is_some())
}

fn preexisting_expressions(old: &Spec<'_>) -> PreexistingExpressions {
    let (mut rules, mut messages) = (HashSet::new(), HashSet::new());
    old.any_schema(|schema| {
        rules.extend(schema.validations.iter().map(|rule| rule.str_at("rule").to_owned()));
        messages.extend(schema.validations.iter().map(|rule| rule.str_at("messageExpression").to_owned()));
        false
    });
    PreexistingExpressions::Some { rules, messages }
}

fn unchanged_schemas(new: &Spec<'_>, old: &Spec<'_>) -> HashSet<String> {
    let (new_schemas, old_schemas) = (Schemas::of(new), Schemas::of(old));
    let is_unchanged = |name: &str| match (new_schemas.get(name), old_schemas.get(name)) {
        (Some(new), Some(old)) => same(new, old),
        _ => false,
    };
    let names = new.versions.iter().map(|version| version.name);
    names.filter(|name| is_unchanged(name)).map(str::to_owned).collect()
}

/// The schemas of versions, by name. Of several versions with one name the first counts.
struct Schemas<'a> {
    by_name: HashMap<&'a str, Option<&'a Value>>,
    /// The common schema also applies to versions that do not exist yet.
    common: Option<Option<&'a Value>>,
}

impl<'a> Schemas<'a> {
    fn of(spec: &Spec<'a>) -> Schemas<'a> {
        let mut by_name = HashMap::with_capacity(spec.versions.len());
        for version in &spec.versions {
            by_name.entry(version.name).or_insert_with(|| version.tree.field("schema"));
        }
        let is_common = spec.versions.iter().all(|version| version.own.validation.is_none());
        let first = spec.versions.first().filter(|_| is_common);
        Schemas { by_name, common: first.map(|version| version.tree.field("schema")) }
    }

    fn get(&self, name: &str) -> Option<Option<&'a Value>> {
        self.by_name.get(name).copied().or(self.common)
    }
}
