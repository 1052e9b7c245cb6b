//! What the query string (and the body of a delete) asks for beside the object.

use pintle_machinery::{
    ErrorList, FieldError, FieldPath, GroupKind, Status, Value, ValueExt,
    error_list::quote,
    options::{validate_dry_run, validate_field_manager, validate_field_validation},
};
use pintle_registry::{DeleteOptions, PropagationPolicy};

/// `ListOptions`, for lists and watches.
#[derive(Debug, Clone, Default)]
pub(super) struct ListOptions {
    pub(super) label_selector: String,
    pub(super) field_selector: String,
    pub(super) allow_watch_bookmarks: bool,
    pub(super) resource_version: Option<u64>,
    pub(super) resource_version_match: String,
    pub(super) timeout_seconds: Option<i64>,
    pub(super) limit: usize,
    pub(super) continue_token: Option<String>,
    pub(super) send_initial_events: Option<bool>,
    resource_version_text: String,
}

impl ListOptions {
    /// Reads them.
    ///
    /// # Errors
    /// 400 for numbers that are none.
    pub(super) fn parse<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Result<ListOptions, Status> {
        let mut options = ListOptions::default();
        let mut seen: Vec<&str> = Vec::new();
        for (name, value) in pairs {
            // Of several values the first counts.
            if seen.contains(&name) {
                continue;
            }
            seen.push(name);
            match name {
                "labelSelector" => options.label_selector = value.to_owned(),
                "fieldSelector" => options.field_selector = value.to_owned(),
                "allowWatchBookmarks" => options.allow_watch_bookmarks = boolean(value),
                "resourceVersion" => options.resource_version_text = value.to_owned(),
                "resourceVersionMatch" => options.resource_version_match = value.to_owned(),
                "timeoutSeconds" => options.timeout_seconds = Some(integer(value)?),
                "limit" => options.limit = usize::try_from(integer(value)?).unwrap_or_default(),
                "continue" => {
                    options.continue_token = Some(value.to_owned()).filter(|token| !token.is_empty())
                }
                "sendInitialEvents" => options.send_initial_events = Some(boolean(value)),
                _ => {}
            }
        }
        Ok(options)
    }

    /// Checks what a list may ask for, and reads the resource version.
    ///
    /// # Errors
    /// 422 for options that do not go together, 400 for a resource version that is no number.
    pub(super) fn validate_list(&mut self) -> Result<(), Status> {
        let mut errors = self.match_errors();
        if self.send_initial_events.is_some() {
            let path = FieldPath::new("sendInitialEvents");
            errors.push(FieldError::forbidden(&path, "sendInitialEvents is forbidden for list"));
        }
        refuse("ListOptions", errors)?;
        self.read_resource_version().map_err(|text| {
            let path = FieldPath::new("resourceVersion");
            let error = FieldError::invalid(&path, self.resource_version_text.clone(), text);
            Status::bad_request(format!("invalid resource version: {error}"))
        })
    }

    /// Checks what a watch may ask for, and reads the resource version.
    ///
    /// # Errors
    /// 422 for options that do not go together, 500 for a resource version that is no number.
    pub(super) fn validate_watch(&mut self) -> Result<(), Status> {
        let mut errors = ErrorList::new();
        let path = FieldPath::new("resourceVersionMatch");
        match (&*self.resource_version_match, self.send_initial_events) {
            ("", None) | ("NotOlderThan", Some(_)) => {}
            (_, None) => errors.push(FieldError::forbidden(
                &path,
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            )),
            (other, Some(_)) => {
                let detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
                errors.push(FieldError::forbidden(&path, detail));
                if !other.is_empty() {
                    errors.push(FieldError::not_supported(&path, other, &["NotOlderThan"]));
                }
            }
        }
        if self.continue_token.is_some() && self.send_initial_events.is_some() {
            let detail = "resourceVersionMatch is forbidden when continue is provided";
            errors.push(FieldError::forbidden(&path, detail));
        }
        refuse("ListOptions", errors)?;
        self.read_resource_version().map_err(|_| {
            Status::unknown(format!(
                "strconv.ParseUint: parsing {}: invalid syntax",
                quote(&self.resource_version_text)
            ))
        })
    }

    fn match_errors(&self) -> ErrorList {
        let mut errors = ErrorList::new();
        let path = FieldPath::new("resourceVersionMatch");
        let version = self.resource_version_text.as_str();
        let wanted = self.resource_version_match.as_str();
        if wanted.is_empty() {
            return errors;
        }
        if version.is_empty() {
            let detail = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            errors.push(FieldError::forbidden(&path, detail));
        }
        if self.continue_token.is_some() {
            let detail = "resourceVersionMatch is forbidden when continue is provided";
            errors.push(FieldError::forbidden(&path, detail));
        }
        if !matches!(wanted, "Exact" | "NotOlderThan") {
            errors.push(FieldError::not_supported(&path, wanted, &["Exact", "NotOlderThan", ""]));
        }
        if wanted == "Exact" && version == "0" {
            let detail = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            errors.push(FieldError::forbidden(&path, detail));
        }
        errors
    }

    fn read_resource_version(&mut self) -> Result<(), &'static str> {
        self.resource_version = match self.resource_version_text.as_str() {
            "" => None,
            text => Some(text.parse().map_err(|_| "must be a number")?),
        };
        Ok(())
    }

    /// Whether exactly the named version is asked for.
    pub(super) fn is_exact(&self) -> bool {
        self.resource_version_match == "Exact"
    }

    /// Whether nothing is said of how the version counts.
    pub(super) fn has_no_match(&self) -> bool {
        self.resource_version_match.is_empty()
    }
}

/// `CreateOptions`, `UpdateOptions`, `PatchOptions`.
#[derive(Debug, Clone, Default)]
pub(super) struct WriteOptions {
    pub(super) dry_run: bool,
    pub(super) field_validation: String,
    pub(super) field_manager: String,
}

impl WriteOptions {
    /// Reads and checks them; `kind` is the name of the options in messages.
    ///
    /// # Errors
    /// 422.
    pub(super) fn parse<'a>(
        pairs: impl Iterator<Item = (&'a str, &'a str)>,
        kind: &str,
    ) -> Result<WriteOptions, Status> {
        let mut options = WriteOptions::default();
        let mut dry_run = Vec::new();
        let mut force = None;
        for (name, value) in pairs {
            match name {
                "dryRun" => dry_run.push(value.to_owned()),
                "fieldValidation" if options.field_validation.is_empty() => {
                    value.clone_into(&mut options.field_validation)
                }
                "fieldManager" if options.field_manager.is_empty() => {
                    value.clone_into(&mut options.field_manager)
                }
                "force" if kind == "PatchOptions" => force = Some(boolean(value)),
                _ => {}
            }
        }
        let mut errors = ErrorList::new();
        if force.is_some() {
            errors.push(FieldError::forbidden(
                &FieldPath::new("force"),
                "may not be specified for non-apply patch",
            ));
        }
        errors.extend(validate_field_manager(&options.field_manager, &FieldPath::new("fieldManager")));
        errors.extend(validate_dry_run(&dry_run, &FieldPath::new("dryRun")));
        errors
            .extend(validate_field_validation(&options.field_validation, &FieldPath::new("fieldValidation")));
        refuse(kind, errors)?;
        options.dry_run = !dry_run.is_empty();
        Ok(options)
    }
}

/// `DeleteOptions` of a decoded body, or of the query when there is no body.
///
/// # Errors
/// 400 and 422.
pub(super) fn delete_options<'a>(
    body: Option<&Value>,
    pairs: impl Iterator<Item = (&'a str, &'a str)>,
) -> Result<DeleteOptions, Status> {
    let mut options = DeleteOptions::default();
    let mut dry_run: Vec<String> = Vec::new();
    let mut policy = None;
    match body {
        Some(body) => {
            options.grace_period_seconds = body.i64_at("gracePeriodSeconds");
            let text = |path: &str| body.at(path).and_then(Value::as_str).map(str::to_owned);
            options.precondition_uid = text("preconditions.uid");
            options.precondition_resource_version = text("preconditions.resourceVersion");
            options.orphan_dependents = body.at("orphanDependents").and_then(Value::as_bool);
            policy = text("propagationPolicy");
            let values = body.items_at("dryRun").iter().filter_map(Value::as_str);
            dry_run.extend(values.map(str::to_owned));
        }
        None => {
            for (name, value) in pairs {
                match name {
                    "gracePeriodSeconds" => options.grace_period_seconds = Some(integer(value)?),
                    "orphanDependents" => options.orphan_dependents = Some(boolean(value)),
                    "propagationPolicy" => policy = Some(value.to_owned()),
                    "dryRun" => dry_run.push(value.to_owned()),
                    _ => {}
                }
            }
        }
    }
    let mut errors = ErrorList::new();
    let path = FieldPath::new("propagationPolicy");
    if let (Some(policy), Some(_)) = (&policy, options.orphan_dependents) {
        let detail = "orphanDependents and deletionPropagation cannot be both set";
        errors.push(FieldError::invalid(&path, policy.clone(), detail));
    }
    options.propagation_policy = match policy.as_deref() {
        None => None,
        Some("Orphan") => Some(PropagationPolicy::Orphan),
        Some("Background") => Some(PropagationPolicy::Background),
        Some("Foreground") => Some(PropagationPolicy::Foreground),
        Some(other) => {
            let supported = ["Foreground", "Background", "Orphan", "nil"];
            errors.push(FieldError::not_supported(&path, other, &supported));
            None
        }
    };
    errors.extend(validate_dry_run(&dry_run, &FieldPath::new("dryRun")));
    refuse("DeleteOptions", errors)?;
    options.dry_run = !dry_run.is_empty();
    Ok(options)
}

fn refuse(kind: &str, errors: ErrorList) -> Result<(), Status> {
    match errors.is_empty() {
        true => Ok(()),
        false => Err(Status::invalid(&GroupKind::new("meta.k8s.io", kind), "", &errors)),
    }
}

fn boolean(text: &str) -> bool {
    !(text == "0" || text.eq_ignore_ascii_case("false"))
}

fn integer(text: &str) -> Result<i64, Status> {
    match text {
        "" => Ok(0),
        text => text.parse().map_err(|_| {
            Status::bad_request(format!("strconv.ParseInt: parsing {}: invalid syntax", quote(text)))
        }),
    }
}
