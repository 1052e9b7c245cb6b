//! Options of creates, updates and patches.

use super::{
    FieldValidation, QueryValues, check, validate_dry_run, validate_field_manager, validate_field_validation,
};
use crate::{ErrorList, FieldError, FieldPath, Status};

/// What a create, update or patch asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WriteOptions {
    /// Nothing is kept.
    pub dry_run: bool,
    /// The manager for `metadata.managedFields`; "" leaves it to the user agent.
    pub field_manager: String,
    /// What becomes of unknown and duplicate fields.
    pub field_validation: FieldValidation,
    /// Whether an apply takes fields away from other managers.
    pub force: bool,
}

impl WriteOptions {
    /// Reads the query string of a create, update or patch other than apply. The kind is the one that messages name:
    /// `CreateOptions`, `UpdateOptions` or `PatchOptions`.
    ///
    /// # Errors
    /// 422 for values that the options cannot have.
    pub fn parse<'a>(
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
        kind: &str,
    ) -> Result<WriteOptions, Status> {
        let query = QueryValues::new(pairs);
        let mut errors = ErrorList::new();
        if kind == "PatchOptions" && query.boolean("force").is_some() {
            let detail = "may not be specified for non-apply patch";
            errors.push(FieldError::forbidden(&FieldPath::new("force"), detail));
        }
        Self::finish(&query, kind, errors)
    }

    /// Reads the query string of a server-side apply.
    ///
    /// # Errors
    /// 422 for values that the options cannot have, and when there is no field manager.
    pub fn parse_apply<'a>(
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<WriteOptions, Status> {
        let query = QueryValues::new(pairs);
        let mut errors = ErrorList::new();
        if query.text("fieldManager").is_empty() {
            let path = FieldPath::new("fieldManager");
            errors.push(FieldError::required(&path, "is required for apply patch"));
        }
        Self::finish(&query, "PatchOptions", errors)
    }

    fn finish(query: &QueryValues<'_>, kind: &str, mut errors: ErrorList) -> Result<WriteOptions, Status> {
        let field_manager = query.text("fieldManager");
        let dry_run = query.all("dryRun");
        let field_validation = query.text("fieldValidation");
        errors.extend(validate_field_manager(field_manager, &FieldPath::new("fieldManager")));
        errors.extend(validate_dry_run(&dry_run, &FieldPath::new("dryRun")));
        errors.extend(validate_field_validation(field_validation, &FieldPath::new("fieldValidation")));
        check(kind, errors)?;
        Ok(WriteOptions {
            dry_run: !dry_run.is_empty(),
            field_manager: field_manager.to_owned(),
            field_validation: FieldValidation::parse(field_validation).unwrap_or_default(),
            force: query.boolean("force").unwrap_or_default(),
        })
    }
}
