//! Options of deletes.

use super::{QueryValues, check, validate_dry_run};
use crate::{ErrorList, FieldError, FieldPath, Status, Value, ValueExt};

/// What becomes of the objects an object owns
/// (<https://kubernetes.io/docs/concepts/architecture/garbage-collection/#cascading-deletion>).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PropagationPolicy {
    /// They stay.
    Orphan,
    /// They go after the object.
    Background,
    /// They go before the object.
    Foreground,
}

/// What a delete asks for (`meta.k8s.io` `DeleteOptions`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeleteOptions {
    /// Seconds the object may take to end.
    pub grace_period_seconds: Option<i64>,
    /// The object must have this uid.
    pub precondition_uid: Option<String>,
    /// The object must have this resourceVersion.
    pub precondition_resource_version: Option<String>,
    /// Nothing is kept.
    pub dry_run: bool,
    /// What becomes of dependents.
    pub propagation_policy: Option<PropagationPolicy>,
    /// The older form of [`PropagationPolicy::Orphan`].
    pub orphan_dependents: Option<bool>,
}

/// Options as they came, not yet checked.
#[derive(Default)]
struct Unchecked {
    grace_period_seconds: Option<i64>,
    uid: Option<String>,
    resource_version: Option<String>,
    dry_run: Vec<String>,
    propagation_policy: Option<String>,
    orphan_dependents: Option<bool>,
}

/// Reads what a delete asks for: in its body (decoded by its schema), or when that is null in its query string. With a
/// body, the query string counts for nothing.
///
/// # Errors
/// 400 for numbers that are none, 422 for values that the options cannot have.
pub fn delete_options_from<'a>(
    body: &Value,
    pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<DeleteOptions, Status> {
    match body {
        Value::Null => Unchecked::from_query(&QueryValues::new(pairs))?,
        body => Unchecked::from_body(body),
    }
    .check()
}

impl Unchecked {
    fn from_query(query: &QueryValues<'_>) -> Result<Unchecked, Status> {
        let given = |name: &str| query.first(name).filter(|value| !value.is_empty()).map(str::to_owned);
        Ok(Unchecked {
            grace_period_seconds: query.integer("gracePeriodSeconds")?,
            uid: given("uid"),
            resource_version: given("resourceVersion"),
            dry_run: query.all("dryRun"),
            propagation_policy: query.first("propagationPolicy").map(str::to_owned),
            orphan_dependents: query.boolean("orphanDependents"),
        })
    }

    fn from_body(body: &Value) -> Unchecked {
        let text = |path: &str| body.at(path).and_then(Value::as_str).map(str::to_owned);
        let dry_run = body.items_at("dryRun").iter();
        Unchecked {
            grace_period_seconds: body.i64_at("gracePeriodSeconds"),
            uid: text("preconditions.uid"),
            resource_version: text("preconditions.resourceVersion"),
            dry_run: dry_run.filter_map(Value::as_str).map(str::to_owned).collect(),
            propagation_policy: text("propagationPolicy"),
            orphan_dependents: body.at("orphanDependents").and_then(Value::as_bool),
        }
    }

    fn check(self) -> Result<DeleteOptions, Status> {
        let mut errors = ErrorList::new();
        let path = FieldPath::new("propagationPolicy");
        let mut propagation_policy = None;
        if let Some(policy) = self.propagation_policy.as_deref() {
            if self.orphan_dependents.is_some() {
                let detail = "orphanDependents and deletionPropagation cannot be both set";
                errors.push(FieldError::invalid(&path, policy, detail));
            }
            propagation_policy = match policy {
                "Foreground" => Some(PropagationPolicy::Foreground),
                "Background" => Some(PropagationPolicy::Background),
                "Orphan" => Some(PropagationPolicy::Orphan),
                other => {
                    let supported = ["Foreground", "Background", "Orphan", "nil"];
                    errors.push(FieldError::not_supported(&path, other, &supported));
                    None
                }
            };
        }
        errors.extend(validate_dry_run(&self.dry_run, &FieldPath::new("dryRun")));
        check("DeleteOptions", errors)?;
        Ok(DeleteOptions {
            grace_period_seconds: self.grace_period_seconds,
            precondition_uid: self.uid,
            precondition_resource_version: self.resource_version,
            dry_run: !self.dry_run.is_empty(),
            propagation_policy,
            orphan_dependents: self.orphan_dependents,
        })
    }
}
