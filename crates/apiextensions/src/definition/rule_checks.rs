//! Compiles the validation rules of a definition when it is written, and reports compile errors and excessive cost
//! (<https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation-rules>).

use super::go_json;
use super::json_schema_props::JsonSchemaProps;
use super::path::Path;
use crate::structural::StructuralSchema;
use crate::structural::rules::{CompileEffort, CompiledRule, PreexistingExpressions, RuleScope};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt};

/// The maximum estimated cost of one rule for one object.
const RULE_COST_LIMIT: u64 = 10_000_000;
/// The maximum estimated cost of all rules of a schema.
const SCHEMA_COST_LIMIT: u64 = 100_000_000;
/// The maximum number of rules in the message about the total cost.
const NAMED_RULES: usize = 4;

/// The cost of the rules of one schema so far.
#[derive(Debug, Default)]
pub(super) struct TotalCost {
    total: u64,
    most_expensive: Vec<(FieldPath, u64)>,
}

impl TotalCost {
    fn observe(&mut self, path: &Path<'_>, cost: u64) {
        self.total = self.total.saturating_add(cost);
        if cost < SCHEMA_COST_LIMIT / 100 {
            return;
        }
        self.most_expensive.push((path.field(), cost));
        self.most_expensive.sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
        self.most_expensive.truncate(NAMED_RULES);
    }

    /// Reports an excessive total cost.
    pub(super) fn check(self, path: &Path<'_>) -> ErrorList {
        if self.total <= SCHEMA_COST_LIMIT {
            return ErrorList::new();
        }
        let detail =
            "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
        let named = self.most_expensive.iter().map(|(path, _)| FieldError::forbidden(path, detail));
        let name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        let all = FieldError::forbidden(&path.field(), too_expensive(name, self.total, SCHEMA_COST_LIMIT));
        named.chain([all]).collect()
    }
}

/// A position at which rules can be compiled, and the maximum number of its values in an object.
pub(super) struct RuleContext<'s> {
    scope: RuleScope<'s>,
    /// `None` when an enclosing list or map has no bound.
    cardinality: Option<u64>,
}

impl<'s> RuleContext<'s> {
    /// The context of the root.
    pub(super) fn root(schema: &'s StructuralSchema) -> RuleContext<'s> {
        RuleContext { scope: schema.rule_scope(), cardinality: Some(1) }
    }

    /// The context of a property of `schema`, which is at this position.
    pub(super) fn property(&self, schema: &JsonSchemaProps<'_>, name: &str) -> Option<RuleContext<'s>> {
        Some(self.below(schema, self.scope.property(name)?))
    }

    /// The context of additional properties.
    pub(super) fn additional(&self, schema: &JsonSchemaProps<'_>) -> Option<RuleContext<'s>> {
        Some(self.below(schema, self.scope.additional_properties()?))
    }

    /// The context of items.
    pub(super) fn items(&self, schema: &JsonSchemaProps<'_>) -> Option<RuleContext<'s>> {
        Some(self.below(schema, self.scope.items()?))
    }

    fn below(&self, schema: &JsonSchemaProps<'_>, scope: RuleScope<'s>) -> RuleContext<'s> {
        let bound = |bound: Option<i64>| bound.map(|bound| u64::try_from(bound).unwrap_or_default());
        let elements = match schema.ty {
            "object" if schema.additional_properties.is_some() => bound(schema.max_properties),
            "array" => bound(schema.max_items),
            _ => Some(1),
        };
        let cardinality = self.cardinality.zip(elements).map(|(own, elements)| own.saturating_mul(elements));
        RuleContext { scope, cardinality }
    }

    /// Compiles the rules of `schema`, which is at this position and has rules.
    pub(super) fn check(
        &self,
        schema: &JsonSchemaProps<'_>,
        path: &Path<'_>,
        surroundings: RuleSurroundings<'_>,
        preexisting: &PreexistingExpressions,
        effort: &CompileEffort,
        costs: &mut TotalCost,
    ) -> ErrorList {
        let path = path.child("x-kubernetes-validations");
        let Some(compiled) = self.scope.compile(self.scope.rules(), preexisting, effort) else {
            let why = "internal error: failed to construct type information for x-kubernetes-validations rules: \
                       unable to convert structural schema to CEL declarations";
            return vec![FieldError::internal(&path.field(), why)];
        };
        let mut errors = ErrorList::new();
        for (index, (rule, compiled)) in schema.validations.iter().zip(&compiled).enumerate() {
            self.check_rule(rule, compiled, &path.index(index), surroundings, costs, &mut errors);
        }
        errors
    }

    fn check_rule(
        &self,
        rule: &Value,
        compiled: &CompiledRule,
        path: &Path<'_>,
        surroundings: RuleSurroundings<'_>,
        costs: &mut TotalCost,
        errors: &mut ErrorList,
    ) {
        let (rule_path, message_path) = (path.child("rule"), path.child("messageExpression"));
        let invalid = |path: &Path<'_>, detail: &str| {
            FieldError::invalid(&path.field(), Value::Null, detail).shown_as(go_json::rule(rule))
        };
        let cost = compiled.max_cost.saturating_mul(self.cardinality.unwrap_or(compiled.max_cardinality));
        if !surroundings.suppress_cost && cost > RULE_COST_LIMIT {
            let detail = too_expensive("estimated rule cost", cost, RULE_COST_LIMIT);
            errors.push(FieldError::forbidden(&rule_path.field(), detail));
        }
        costs.observe(&rule_path, cost);
        if let Some(error) = &compiled.error {
            errors.push(invalid(&rule_path, error.detail()));
        }
        if let Some(error) = &compiled.message_expression_error {
            errors.push(invalid(&message_path, error.detail()));
        } else if compiled.message_expression.is_some() {
            let cost = compiled.message_expression_max_cost;
            if !surroundings.suppress_cost && cost > RULE_COST_LIMIT {
                let detail = too_expensive("estimated messageExpression cost", cost, RULE_COST_LIMIT);
                errors.push(FieldError::forbidden(&message_path.field(), detail));
            }
            costs.observe(&message_path, cost);
        }
        let optional = rule.at("optionalOldSelf").and_then(Value::as_bool);
        match (compiled.uses_old_self, surroundings.uncorrelatable, optional) {
            (true, Some(within), _) => {
                let detail = format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within {}",
                    within.text()
                );
                errors.push(FieldError::invalid(&rule_path.field(), rule.str_at("rule"), detail));
            }
            (false, _, Some(optional)) => {
                let detail = "may not be set if oldSelf is not used in rule";
                errors.push(FieldError::invalid(&path.child("optionalOldSelf").field(), optional, detail));
            }
            _ => {}
        }
    }
}

/// Conditions for the rules of a position.
#[derive(Clone, Copy)]
pub(super) struct RuleSurroundings<'p> {
    /// The first enclosing position whose values have no counterpart in the old object, so that `oldSelf` is
    /// unavailable.
    pub(super) uncorrelatable: Option<Path<'p>>,
    /// Whether the cost of single rules is unlimited, because the schema was accepted before.
    pub(super) suppress_cost: bool,
}

fn too_expensive(name: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{name} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and \
         maxLength where arrays, maps, and strings are declared)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excessive_cost_is_reported_with_a_useful_precision() {
        let check = |cost: u64, expected: &str| {
            let text = too_expensive("cost", cost, 10);
            assert!(text.starts_with(&format!("cost exceeds budget by factor of {expected} (try")), "{text}");
        };
        check(11, "1.100000x");
        check(25, "2.5x");
        check(1001, "more than 100x");
    }
}
