//! The options that requests carry in their query strings.

mod checks;

pub use checks::{validate_dry_run, validate_field_manager, validate_field_validation};
