//! Decodes the options of creates, updates and patches.

use super::{
    FieldValidation, QueryValues, check, validate_dry_run, validate_field_manager, validate_field_validation,
};
use crate::{ErrorList, FieldError, FieldPath, Map, Status, Value, ValueExt};
use pintle_tree::json;

/// The options of a create, update or patch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WriteOptions {
    /// Runs all checks and stores nothing.
    pub dry_run: bool,
    /// The field manager; "" derives it from the user agent.
    pub field_manager: String,
    /// The treatment of unknown and duplicate fields; `None` when the request does not say.
    pub field_validation: Option<FieldValidation>,
    /// Whether an apply takes conflicting fields from other managers.
    pub force: bool,
}

impl WriteOptions {
    /// Decodes the query string of a create, update or patch other than apply. `kind` is the name in messages:
    /// `CreateOptions`, `UpdateOptions` or `PatchOptions`.
    ///
    /// # Errors
    /// 422 for invalid values.
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

    /// Decodes the query string of a server-side apply.
    ///
    /// # Errors
    /// 422 for invalid values, and when the field manager is missing.
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

    /// The fields that `CreateOptions` and `UpdateOptions` have, without those that the request does not set.
    pub fn to_object(&self) -> Value {
        let mut object = Value::Object(Map::new());
        if self.dry_run {
            object.set("dryRun", json!(["All"]));
        }
        if !self.field_manager.is_empty() {
            object.set("fieldManager", self.field_manager.as_str());
        }
        if let Some(validation) = self.field_validation {
            object.set("fieldValidation", validation.as_str());
        }
        object
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
            field_validation: Some(field_validation)
                .filter(|text| !text.is_empty())
                .and_then(FieldValidation::parse),
            force: query.boolean("force").unwrap_or_default(),
        })
    }
}
