//! Defaults and validates custom resource definitions
//! (<https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/>).
//!
//! [`validation`] is the entry point of validation. Messages, paths and the order of errors are the reference's, since
//! clients show and match them. A definition is parsed into [`spec::Spec`] once, and a schema into
//! [`json_schema_props::JsonSchemaProps`]; the checks walk these types, and build a path's text only for an error.

mod strategy;

mod validation;

pub(crate) mod api_approval;
mod check;
mod columns;
mod conversion_rules;
mod default_rules;
mod deprecation;
mod formats;
mod go_json;
mod json_schema_props;
mod names;
mod options;
mod path;
mod ratcheting;
mod rule_checks;
mod schema_rules;
mod schema_validation;
mod selectable_fields;
mod spec;
mod structural_rules;
mod subresources;
pub(crate) mod valid_path;
mod violations;

pub(crate) use conversion_rules::check_ca_bundle;
pub(crate) use strategy::{DefinitionStrategy, StatusStrategy};
pub(crate) use violations::{Violations, violations};
