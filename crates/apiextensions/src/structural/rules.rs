//! Runs validation rules: expressions that objects must satisfy
//! (<https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation-rules>).
//!
//! The rules of a schema are compiled once, for its first object. A walk along object and compiled rules runs each rule
//! at its position, with the old value as `oldSelf`. All rules of an object share one cost budget; when it is
//! exhausted, no more rules run and the object is rejected.
//!
//! A failure on an unchanged part is ratcheted: it becomes a warning, except for transition rules.

mod compile;
mod compile_effort;
mod compiled_rule;
mod decl_type;
mod field_path;
mod metrics;
mod tree;
mod view;

use std::{cell::Cell, collections::HashMap, time::Instant};

use pintle_cel::{Activation, EvaluationError, Program, Value as CelValue, WorkLimit};
use pintle_machinery::{ErrorList, ErrorType, FieldError, FieldPath, Map, Value};

pub(crate) use compile::PreexistingExpressions;
pub use compile::RuleScope;
pub use compile_effort::CompileEffort;
pub use compiled_rule::{CompiledRule, RuleError};
pub use metrics::RuleMetrics;
pub(crate) use metrics::ratcheting;

use super::arena::Arena;
use super::correlated::Correlated;
use super::node::{JsonType, ListType, Node, Rule};
use super::path::Path;
use compile::{OLD_SELF, PER_CALL_LIMIT, SELF};
use tree::RuleNode;

/// The cost budget of all rules of an object.
pub(super) const BUDGET: u64 = 10_000_000;

/// The maximum number of items that all rules of an object visit together, independent of the cost.
const WORK_LIMIT: u64 = 10_000_000;
/// The number of items that each run of a rule counts for in addition.
const RUN: u64 = 8;

/// The maximum size of collected errors and of collected warnings, in bytes; more than is ever reported.
const MAX_FINDING_BYTES: usize = 4 << 20;

/// The maximum size of a message from an expression, in bytes.
const MAX_MESSAGE: usize = 5 * 1024;

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// The results of the rules for an object.
#[derive(Debug, Default)]
pub struct RuleFindings {
    /// The errors that reject the object.
    pub errors: ErrorList,
    /// The ratcheted errors, as warnings.
    pub warnings: Vec<String>,
}

/// A schema's compiled rules.
#[derive(Debug)]
pub(super) struct CompiledRules(Option<Box<RuleNode>>);

impl CompiledRules {
    /// The rules of a schema, whose root is a resource or not.
    pub(super) fn new(schema: &Arena, is_resource: bool, effort: &CompileEffort) -> CompiledRules {
        CompiledRules(RuleNode::build(schema, is_resource, effort).map(Box::new))
    }

    /// Runs the rules. `preceding` holds the object's other errors: rules do not run on objects with an invalid shape.
    pub(super) fn validate(
        &self,
        schema: &Arena,
        object: &Value,
        old: Option<&Value>,
        preceding: &ErrorList,
    ) -> RuleFindings {
        let Some(root) = &self.0 else { return RuleFindings::default() };
        if preceding.iter().any(|error| is_blocking(error.error_type)) {
            let detail = "some validation rules were not checked because the object was invalid; correct the existing \
                          errors to complete validation";
            let error = FieldError::invalid(&FieldPath::default(), Value::Null, detail);
            return RuleFindings { errors: vec![error], warnings: Vec::new() };
        }
        let correlated = old.map(|old| Correlated::new(schema, schema.root_node(), object, old));
        let ratcheting = Ratcheting { current: correlated.as_ref(), parent: None };
        let mut run = Run::new(schema, BUDGET);
        // The exhausted budget is reported already.
        let _ = run.node(root, object, old, ratcheting, &Path::ROOT);
        run.findings
    }

    /// Runs the rules on a default of a definition within the remaining budget: as on an update that leaves it as it is,
    /// and, when they hold, as on a create. The budget that remains is that of the dearer run. Once it is exhausted, which
    /// is reported as an error, it is `None`, and no rules run.
    pub(super) fn validate_default(
        &self,
        schema: &Arena,
        value: &Value,
        position: &FieldPath,
        budget: &Cell<Option<u64>>,
    ) -> ErrorList {
        let (Some(root), Some(left)) = (&self.0, budget.get()) else { return ErrorList::new() };
        let run = |old: Option<&Value>| {
            let nothing = Ratcheting { current: None, parent: None };
            let mut run = Run::new(schema, left);
            let done = run.node(root, value, old, nothing, &Path::base(position));
            (run.findings.errors, done.is_ok().then_some(run.budget))
        };
        let (mut errors, mut remaining) = run(Some(value));
        if errors.is_empty() {
            let (of_create, left_by_create) = run(None);
            (errors, remaining) = (of_create, remaining.min(left_by_create));
        }
        budget.set(remaining);
        errors
    }
}

/// Whether an error of this type makes the object's shape invalid.
fn is_blocking(error_type: ErrorType) -> bool {
    matches!(
        error_type,
        ErrorType::NotSupported
            | ErrorType::Required
            | ErrorType::TooLong
            | ErrorType::TooMany
            | ErrorType::TypeInvalid
    )
}

/// The error of an exhausted budget; no further rules run.
struct Spent;

/// The position of the walk in the old object.
#[derive(Clone, Copy)]
struct Ratcheting<'a, 'o> {
    /// The position itself, if it has an old value.
    current: Option<&'a Correlated<'o>>,
    /// The nearest enclosing position that has an old value.
    parent: Option<&'a Correlated<'o>>,
}

impl<'a, 'o> Ratcheting<'a, 'o> {
    fn is_unchanged(self) -> bool {
        self.current.or(self.parent).is_some_and(Correlated::is_unchanged)
    }

    fn key(self, name: &str) -> Ratcheting<'a, 'o> {
        let Some(current) = self.current else { return self };
        if self.parent.is_none() && matches!(name, "apiVersion" | "kind") {
            // Both versions were converted to one type, so changes of these fields are invisible.
            return Ratcheting { current: None, parent: None };
        }
        Ratcheting { current: current.key(name), parent: Some(current) }
    }

    fn index(self, index: usize) -> Ratcheting<'a, 'o> {
        let Some(current) = self.current else { return self };
        Ratcheting { current: current.index(index), parent: Some(current) }
    }
}

struct Run<'s> {
    schema: &'s Arena,
    budget: u64,
    work: WorkLimit,
    findings: RuleFindings,
    error_bytes: usize,
    warning_bytes: usize,
}

impl<'s> Run<'s> {
    fn new(schema: &'s Arena, budget: u64) -> Run<'s> {
        let (work, findings) = (WorkLimit::new(WORK_LIMIT), RuleFindings::default());
        Run { schema, budget, work, findings, error_bytes: 0, warning_bytes: 0 }
    }

    fn node(
        &mut self,
        rules: &RuleNode,
        value: &Value,
        old: Option<&Value>,
        ratcheting: Ratcheting<'_, '_>,
        path: &Path<'_>,
    ) -> Result<(), Spent> {
        let started = Instant::now();
        let result = self.rules_within(rules, value, old, ratcheting, path);
        metrics::evaluated(started.elapsed());
        result
    }

    fn rules_within(
        &mut self,
        rules: &RuleNode,
        value: &Value,
        old: Option<&Value>,
        ratcheting: Ratcheting<'_, '_>,
        path: &Path<'_>,
    ) -> Result<(), Spent> {
        // Rules about null belong to the enclosing object or list.
        if value.is_null() {
            return Ok(());
        }
        let old = old.filter(|old| !old.is_null());
        self.rules(rules, value, old, ratcheting, path)?;
        for alternative in &rules.all_of {
            let ratcheting = Ratcheting { current: None, parent: ratcheting.parent };
            self.node(alternative, value, old, ratcheting, path)?;
        }
        match value {
            Value::Array(items) => {
                let Some(item_rules) = &rules.items else { return Ok(()) };
                let old = old.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
                let schema = self.schema;
                let old = KeyedItems::new(schema, schema.node(rules.node), old);
                for (index, item) in items.iter().enumerate() {
                    let old = old.find(item);
                    self.node(item_rules, item, old, ratcheting.index(index), &path.index(index))?;
                }
                Ok(())
            }
            Value::Object(members) => {
                self.members(rules, members, old.and_then(Value::as_object), ratcheting, path)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        }
    }

    fn members(
        &mut self,
        rules: &RuleNode,
        members: &Map,
        old: Option<&Map>,
        ratcheting: Ratcheting<'_, '_>,
        path: &Path<'_>,
    ) -> Result<(), Spent> {
        if let Some(rules) = &rules.additional {
            for (name, value) in members {
                let old = old.and_then(|old| old.get(name));
                self.node(rules, value, old, ratcheting.key(name), &path.key(name))?;
            }
        }
        for (name, rules) in &rules.properties {
            if let Some(value) = members.get(name) {
                let old = old.and_then(|old| old.get(name));
                self.node(rules, value, old, ratcheting.key(name), &path.child(name))?;
            }
        }
        Ok(())
    }

    fn rules(
        &mut self,
        rules: &RuleNode,
        value: &Value,
        old: Option<&Value>,
        ratcheting: Ratcheting<'_, '_>,
        path: &Path<'_>,
    ) -> Result<(), Spent> {
        if self.error_bytes > MAX_FINDING_BYTES {
            return Err(Spent);
        }
        let node = self.schema.node(rules.node);
        if let Some(error) = rules.error {
            self.invalid(path, node, format!("rule compiler initialization error: {error}"));
            return Ok(());
        }
        if rules.rules.is_empty() {
            return Ok(());
        }
        if self.budget == 0 {
            self.invalid(path, node, OUT_OF_BUDGET.to_owned());
            return Err(Spent);
        }
        let own = CelValue::from_object(value, &*rules.view);
        let old_self = old.map(|old| CelValue::from_object(old, &*rules.view));
        // Messages see the old state as it is, also those of rules to which it is optional, and only if one of the rules
        // reads it.
        let shows_old = rules.rules.iter().any(|(_, compiled)| compiled.uses_old_self);
        let of_messages = activation(&own, old_self.as_ref().filter(|_| shows_old), false);
        for (rule, compiled) in &rules.rules {
            if self.error_bytes > MAX_FINDING_BYTES {
                return Err(Spent);
            }
            if !self.work.spend(RUN) {
                self.invalid(path, node, OUT_OF_BUDGET.to_owned());
                return Err(Spent);
            }
            if let Some(error) = &compiled.error {
                self.invalid(path, node, format!("rule compile error: {}", error.detail()));
                continue;
            }
            let Some(program) = &compiled.program else { continue };
            let optional = rule.optional_old_self == Some(true);
            if compiled.uses_old_self && old.is_none() && !optional {
                continue;
            }
            let activation = activation(&own, old_self.as_ref(), optional);
            let result = match &activation {
                Ok(activation) => self.evaluate(program, activation, path, node)?,
                Err(error) => Err(error.clone()),
            };
            match (result, &activation) {
                (Ok(result), Ok(activation)) => {
                    if result != Some(true) {
                        let of_message = of_messages.as_ref().unwrap_or(activation);
                        self.failed(rule, compiled, of_message, value, node, ratcheting, path)?;
                    }
                }
                (Ok(_), Err(_)) => {}
                (Err(error), _) => {
                    let text = rule_text(rule);
                    match &error {
                        EvaluationError::CostLimitExceeded => {
                            let detail = format!(
                                "'{error}': no further validation rules will be run due to call cost exceeds limit for \
                                 rule: {text}"
                            );
                            self.invalid(path, node, detail);
                            return Err(Spent);
                        }
                        error if error.to_string().starts_with("no such overload") => {
                            let detail = format!(
                                "'{error}': call arguments did not match a supported operator, function or macro \
                                 signature for rule: {text}"
                            );
                            self.invalid(path, node, detail);
                        }
                        error => self.invalid(path, node, format!("{error} evaluating rule: {text}")),
                    }
                }
            }
        }
        Ok(())
    }

    /// Runs a rule and deducts its cost from the budget. The result is `None` when it is not a boolean.
    fn evaluate<'a>(
        &mut self,
        program: &'a Program,
        activation: &Activation<'a>,
        path: &Path<'_>,
        node: &Node,
    ) -> Result<Result<Option<bool>, EvaluationError>, Spent> {
        let mut left = PER_CALL_LIMIT;
        let result = program.evaluate(activation, &mut left);
        match self.budget.checked_sub(PER_CALL_LIMIT - left) {
            Some(budget) => self.budget = budget,
            None => {
                self.invalid(path, node, OUT_OF_BUDGET.to_owned());
                return Err(Spent);
            }
        }
        Ok(result.map(|result| result.as_bool()))
    }

    /// Reports a failed rule.
    #[expect(
        clippy::too_many_arguments,
        reason = "the one place where all that is known of a rule comes together"
    )]
    fn failed<'a>(
        &mut self,
        rule: &Rule,
        compiled: &'a CompiledRule,
        activation: &Activation<'a>,
        value: &Value,
        node: &Node,
        ratcheting: Ratcheting<'_, '_>,
        path: &Path<'_>,
    ) -> Result<(), Spent> {
        let mut field = path.to_field_path();
        if !compiled.field_path.is_empty() {
            field = field.child(&compiled.field_path);
        }
        let ratcheted = !compiled.uses_old_self && ratcheting.is_unchanged();
        let detail = match &compiled.message_expression {
            None => None,
            Some(program) => match self.message(program, &rule.message_expression, activation) {
                Ok(message) => message,
                Err(detail) => {
                    self.add(FieldError::invalid(&field, self.schema.type_name(node), detail), ratcheted);
                    return Err(Spent);
                }
            },
        };
        let detail = detail.unwrap_or_else(|| match rule.message.is_empty() {
            true => format!("failed rule: {}", rule_text(rule)),
            false => rule.message.trim().to_owned(),
        });
        // Objects and lists are not shown, because they may be large.
        let shown = !matches!(node.ty, Some(JsonType::Object | JsonType::Array));
        let (error_type, bad_value, detail) = match rule.reason.as_deref() {
            Some("FieldValueForbidden") => (ErrorType::Forbidden, None, detail),
            Some("FieldValueRequired") => (ErrorType::Required, None, detail),
            Some("FieldValueDuplicate") => (ErrorType::Duplicate, Some(value), String::new()),
            _ => (ErrorType::Invalid, Some(value), detail),
        };
        let bad_value = bad_value.filter(|_| shown).cloned();
        self.add(
            FieldError { error_type, field, bad_value, shown_as: None, is_named_type: false, detail },
            ratcheted,
        );
        Ok(())
    }

    /// The message from the expression; `None` when the result cannot be shown. The error is the detail to report when
    /// the budget is exhausted.
    fn message<'a>(
        &mut self,
        program: &'a Program,
        source: &str,
        activation: &Activation<'a>,
    ) -> Result<Option<String>, String> {
        let mut left = PER_CALL_LIMIT;
        let result = program.evaluate(activation, &mut left);
        let Some(budget) = self.budget.checked_sub(PER_CALL_LIMIT - left) else {
            let detail = "messageExpression evaluation failed due to running out of cost budget, no further validation \
                          rules will be run";
            return Err(detail.to_owned());
        };
        if result.as_ref().err() == Some(&EvaluationError::CostLimitExceeded) {
            let source = pintle_go_forms::quote(source);
            return Err(format!(
                "no further validation rules will be run due to call cost exceeds limit for messageExpression: {source}"
            ));
        }
        self.budget = budget;
        let Ok(message) = result else { return Ok(None) };
        let message = message.as_str().map(str::trim).unwrap_or_default();
        let fits = !message.is_empty() && message.len() <= MAX_MESSAGE && !message.contains('\n');
        Ok(fits.then(|| message.to_owned()))
    }

    /// Adds an error that shows the name of the type instead of the value.
    fn invalid(&mut self, path: &Path<'_>, node: &Node, detail: String) {
        self.add(FieldError::invalid(&path.to_field_path(), self.schema.type_name(node), detail), false);
    }

    fn add(&mut self, error: FieldError, ratcheted: bool) {
        const ITSELF: usize = 256;
        match ratcheted {
            true if self.warning_bytes > MAX_FINDING_BYTES => {}
            true => {
                let warning = error.to_string();
                self.warning_bytes += ITSELF + warning.len();
                self.findings.warnings.push(warning);
            }
            false => {
                let shown = error.bad_value.as_ref().and_then(Value::as_str).map_or(0, str::len);
                self.error_bytes += ITSELF + error.field.as_str().len() + error.detail.len() + shown;
                self.findings.errors.push(error);
            }
        }
    }
}

/// The old items of a list of type map by their keys; empty for other lists, whose items are not correlated.
struct KeyedItems<'s, 'v> {
    keys: Vec<&'s str>,
    by_keys: HashMap<Vec<&'v Value>, &'v Value>,
}

impl<'s, 'v> KeyedItems<'s, 'v> {
    fn new(schema: &'s Arena, node: &Node, old: &'v [Value]) -> KeyedItems<'s, 'v> {
        let is_map = node.list_type == ListType::Map && node.ty == Some(JsonType::Array);
        let keys = match is_map && !old.is_empty() {
            true => schema.strs(node.list_map_keys).collect(),
            false => Vec::new(),
        };
        let mut items = KeyedItems { keys, by_keys: HashMap::new() };
        if !items.keys.is_empty() {
            for item in old {
                if let Some(keys) = items.keys_of(item) {
                    items.by_keys.entry(keys).or_insert(item);
                }
            }
        }
        items
    }

    fn keys_of<'i>(&self, item: &'i Value) -> Option<Vec<&'i Value>> {
        let members = item.as_object()?;
        let scalar = |name: &&str| {
            members.get(name).filter(|key| !key.is_null() && !key.is_array() && !key.is_object())
        };
        self.keys.iter().map(scalar).collect()
    }

    fn find(&self, item: &Value) -> Option<&'v Value> {
        if self.by_keys.is_empty() {
            return None;
        }
        let keys = self.keys_of(item)?;
        self.by_keys.get(keys.as_slice()).copied()
    }
}

/// The variables of a rule. An error when the data does not fit the schema.
fn activation<'a>(
    own: &Result<CelValue<'a>, EvaluationError>,
    old: Option<&Result<CelValue<'a>, EvaluationError>>,
    optional: bool,
) -> Result<Activation<'a>, EvaluationError> {
    let activation = Activation::new().with(SELF, own.clone()?);
    let old = match old {
        Some(old) => Some(old.clone()?),
        None => None,
    };
    Ok(match (optional, old) {
        (true, old) => activation.with(OLD_SELF, CelValue::optional(old)),
        (false, Some(old)) => activation.with(OLD_SELF, old),
        (false, None) => activation,
    })
}

/// The text for a rule in messages.
fn rule_text(rule: &Rule) -> &str {
    match rule.message.is_empty() {
        true => rule.rule.trim(),
        false => rule.message.trim(),
    }
}

#[cfg(test)]
mod tests;
