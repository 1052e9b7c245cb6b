//! Decodes the options in the query strings of requests and in the bodies of deletes
//! (<https://kubernetes.io/docs/reference/using-api/api-concepts/>).
//!
//! Each kind is decoded and validated in one step, so that a decoded value is valid. Of a parameter given more than
//! once the first value counts; unknown parameters are ignored; a boolean is true unless it is `0` or `false`.

mod checks;
mod connect;
mod delete;
mod field_validation;
mod get;
mod list;
mod preconditions;
mod query;
mod resource_version;
mod table;
#[cfg(test)]
mod tests;
mod write;

pub use checks::{validate_dry_run, validate_field_manager, validate_field_validation};
pub use connect::connect_options;
pub use delete::{
    DeleteOptions, IGNORE_STORE_READ_ERROR, PropagationPolicy, delete_options_and_error, delete_options_from,
};
pub use field_validation::FieldValidation;
pub use get::GetOptions;
pub use list::{ListOptions, ListStart, ResourceVersionMatch};
pub use preconditions::{Preconditions, UnmetPrecondition};
pub use query::QueryValues;
pub use resource_version::{
    parse_list_resource_version, parse_resource_version, parse_written_resource_version,
};
pub use table::IncludeObject;
pub use write::WriteOptions;

use crate::{ErrorList, GroupKind, Status};

/// A 422 for options of this kind, if there are errors.
fn check(kind: &str, errors: ErrorList) -> Result<(), Status> {
    match errors.is_empty() {
        true => Ok(()),
        false => Err(Status::invalid(&GroupKind::new("meta.k8s.io", kind), "", &errors)),
    }
}
