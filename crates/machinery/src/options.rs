//! The options that requests carry in their query strings.

mod checks;
mod field_validation;

pub use checks::{validate_dry_run, validate_field_manager, validate_field_validation};
pub use field_validation::FieldValidation;
