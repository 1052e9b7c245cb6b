//! Decodes the options of deletes.

use super::{Preconditions, QueryValues, check, validate_dry_run};
use crate::{ErrorList, FieldError, FieldPath, Map, Status, Value, ValueExt};
use pintle_tree::json;

/// How a delete treats the dependents of an object
/// (<https://kubernetes.io/docs/concepts/architecture/garbage-collection/#cascading-deletion>).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PropagationPolicy {
    /// Dependents are kept, without the owner reference.
    Orphan,
    /// Dependents are deleted after the object.
    Background,
    /// Dependents are deleted before the object.
    Foreground,
}

/// The options of a delete (`meta.k8s.io` `DeleteOptions`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeleteOptions {
    /// The grace period in seconds.
    pub grace_period_seconds: Option<i64>,
    /// The object must meet these, otherwise the delete fails.
    pub preconditions: Preconditions,
    /// Runs all checks and deletes nothing.
    pub dry_run: bool,
    /// How the delete treats dependents.
    pub propagation_policy: Option<PropagationPolicy>,
    /// The older form of [`PropagationPolicy::Orphan`].
    pub orphan_dependents: Option<bool>,
    /// Deletes the object even if it cannot be read (`ignoreStoreReadErrorWithClusterBreakingPotential`).
    pub ignore_store_read_error: bool,
}

impl PropagationPolicy {
    /// The option's value.
    pub fn as_str(self) -> &'static str {
        match self {
            PropagationPolicy::Orphan => "Orphan",
            PropagationPolicy::Background => "Background",
            PropagationPolicy::Foreground => "Foreground",
        }
    }
}

impl DeleteOptions {
    /// The fields of `DeleteOptions`, without those that the request does not set.
    pub fn to_object(&self) -> Value {
        let mut object = Value::Object(Map::new());
        if let Some(seconds) = self.grace_period_seconds {
            object.set("gracePeriodSeconds", seconds);
        }
        if let Some(uid) = &self.preconditions.uid {
            object.set("preconditions.uid", uid.as_str());
        }
        if let Some(version) = &self.preconditions.resource_version {
            object.set("preconditions.resourceVersion", version.as_str());
        }
        if let Some(orphan) = self.orphan_dependents {
            object.set("orphanDependents", orphan);
        }
        if let Some(policy) = self.propagation_policy {
            object.set("propagationPolicy", policy.as_str());
        }
        if self.dry_run {
            object.set("dryRun", json!(["All"]));
        }
        if self.ignore_store_read_error {
            object.set(IGNORE_STORE_READ_ERROR, true);
        }
        object
    }
}

/// The name of [`DeleteOptions::ignore_store_read_error`].
pub const IGNORE_STORE_READ_ERROR: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";

/// Decoded options before validation.
#[derive(Default)]
struct Unchecked {
    grace_period_seconds: Option<i64>,
    uid: Option<String>,
    resource_version: Option<String>,
    dry_run: Vec<String>,
    propagation_policy: Option<String>,
    orphan_dependents: Option<bool>,
    ignore_store_read_error: bool,
}

/// Decodes the options of a delete: from its body (decoded by its schema), or when that is null from its query string.
/// With a body, the query string is ignored. [`DeleteOptions::ignore_store_read_error`] is false unless
/// `unsafe_deletes` is true.
///
/// # Errors
/// 400 for malformed numbers, 422 for invalid values.
pub fn delete_options_from<'a>(
    body: &Value,
    pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    unsafe_deletes: bool,
) -> Result<DeleteOptions, Status> {
    let mut unchecked = match body {
        Value::Null => Unchecked::from_query(&QueryValues::new(pairs))?,
        body => Unchecked::from_body(body),
    };
    unchecked.ignore_store_read_error &= unsafe_deletes;
    let (options, checked) = unchecked.check();
    checked.map(|()| options)
}

/// As [`delete_options_from`] a body, for an operation that acts by the options before the delete finds the error of
/// invalid ones. An unknown propagation policy is none.
pub fn delete_options_and_error(body: &Value) -> (DeleteOptions, Option<Status>) {
    let unchecked = Unchecked { ignore_store_read_error: false, ..Unchecked::from_body(body) };
    let (options, checked) = unchecked.check();
    (options, checked.err())
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
            ignore_store_read_error: query.boolean(IGNORE_STORE_READ_ERROR).unwrap_or_default(),
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
            ignore_store_read_error: body.bool_at(IGNORE_STORE_READ_ERROR),
        }
    }

    /// The options, and the error of those that are invalid.
    fn check(self) -> (DeleteOptions, Result<(), Status>) {
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
        if self.ignore_store_read_error {
            let path = FieldPath::new(IGNORE_STORE_READ_ERROR);
            let others = [
                (!self.dry_run.is_empty(), "dryRun"),
                (self.propagation_policy.is_some(), "propagationPolicy"),
                (self.orphan_dependents.is_some(), "orphanDependents"),
                (self.grace_period_seconds.is_some(), "gracePeriodSeconds"),
                (self.uid.is_some() || self.resource_version.is_some(), "preconditions"),
            ];
            for (_, name) in others.iter().filter(|(given, _)| *given) {
                let detail = format!("cannot be set together with .{name}");
                errors.push(FieldError::invalid(&path, true, &detail));
            }
        }
        let options = DeleteOptions {
            grace_period_seconds: self.grace_period_seconds,
            preconditions: Preconditions { uid: self.uid, resource_version: self.resource_version },
            dry_run: !self.dry_run.is_empty(),
            propagation_policy,
            orphan_dependents: self.orphan_dependents,
            ignore_store_read_error: self.ignore_store_read_error,
        };
        (options, check("DeleteOptions", errors))
    }
}
