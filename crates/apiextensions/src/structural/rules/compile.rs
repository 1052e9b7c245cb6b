//! Compiles rules, for definitions that are written and for objects.
//!
//! A [`RuleScope`] is a position in a schema that may have rules. Scopes of child positions are derived from it, so
//! that types are computed once. Compile errors are returned with the messages that clients see.

use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use pintle_cel::estimate::{Estimate, SizeEstimator, estimate_cost};
use pintle_cel::{CompileErrors, Environment, EnvironmentType, Program, Stage, types::Type};

use super::compile_effort::CompileEffort;
use super::compiled_rule::{CompiledRule, RuleError};
use super::decl_type::{DeclType, Fields};
use super::field_path;
use super::metrics;
use crate::structural::arena::Arena;
use crate::structural::node::{Flags, Node, Rule};

/// The variables of rules.
pub(super) const SELF: &str = "self";
pub(super) const OLD_SELF: &str = "oldSelf";

/// The maximum cost of each run of a rule (<https://kubernetes.io/docs/reference/using-api/cel/#resource-constraints>).
pub(super) const PER_CALL_LIMIT: u64 = 1_000_000;

/// The rules and message expressions that the definition had before a write, which selects the environment of each.
#[derive(Debug, Default)]
pub(crate) enum PreexistingExpressions {
    /// All: the definition is stored.
    #[default]
    All,
    /// These.
    Some {
        /// The rules.
        rules: HashSet<String>,
        /// The message expressions.
        messages: HashSet<String>,
    },
}

impl PreexistingExpressions {
    /// None: the definition is new.
    pub(crate) fn none() -> PreexistingExpressions {
        PreexistingExpressions::Some { rules: HashSet::new(), messages: HashSet::new() }
    }

    fn of_rule(&self, rule: &str) -> EnvironmentType {
        match self {
            PreexistingExpressions::All => EnvironmentType::StoredExpressions,
            PreexistingExpressions::Some { rules, .. } => EnvironmentType::of(rules.contains(rule)),
        }
    }

    fn of_message(&self, expression: &str) -> EnvironmentType {
        match self {
            PreexistingExpressions::All => EnvironmentType::StoredExpressions,
            PreexistingExpressions::Some { messages, .. } => {
                EnvironmentType::of(messages.contains(expression))
            }
        }
    }
}

/// A position in a schema with the type of its values.
#[derive(Clone, Debug)]
pub struct RuleScope<'s> {
    schema: &'s Arena,
    node: &'s Node,
    decl_type: Option<Arc<DeclType>>,
}

impl<'s> RuleScope<'s> {
    /// The scope of whole objects.
    pub(crate) fn root(schema: &'s Arena) -> RuleScope<'s> {
        let node = schema.root_node();
        RuleScope { schema, node, decl_type: DeclType::of(schema, node, true).map(Arc::new) }
    }

    /// The scope of a property; `None` when there is no such property.
    pub fn property(&self, name: &str) -> Option<RuleScope<'s>> {
        let node = self.schema.property(self.node, name)?;
        let known = self.decl_type.as_ref().and_then(|decl| decl.field(&pintle_cel::escape(name)?));
        Some(self.below(node, known))
    }

    /// The scope of a list's items.
    pub fn items(&self) -> Option<RuleScope<'s>> {
        let node = self.schema.items(self.node)?;
        Some(self.below(node, self.decl_type.as_ref().and_then(|decl| decl.element())))
    }

    /// The scope of a map's values.
    pub fn additional_properties(&self) -> Option<RuleScope<'s>> {
        let node = self.schema.additional(self.node)?;
        Some(self.below(node, self.decl_type.as_ref().and_then(|decl| decl.element())))
    }

    /// A value that expressions of the parent cannot read may still have rules of its own.
    fn below(&self, node: &'s Node, known: Option<&Arc<DeclType>>) -> RuleScope<'s> {
        let resource = node.flags.has(Flags::EMBEDDED_RESOURCE);
        let decl_type = known.cloned().or_else(|| DeclType::of(self.schema, node, resource).map(Arc::new));
        RuleScope { schema: self.schema, node, decl_type }
    }

    /// The rules that the definition declares at this position.
    pub fn rules(&self) -> &'s [Rule] {
        self.node.rules.of(&self.schema.rules)
    }

    /// Whether expressions can read values of this position. If not, rules here do not compile.
    pub fn has_type(&self) -> bool {
        self.decl_type.is_some()
    }

    /// Compiles rules at this position: its own ones, or those of an `allOf` in it. `None` when expressions cannot read
    /// values of this position.
    pub(crate) fn compile(
        &self,
        rules: &[Rule],
        preexisting: &PreexistingExpressions,
        effort: &CompileEffort,
    ) -> Option<Vec<CompiledRule>> {
        let decl_type = self.decl_type.as_ref()?;
        let started = Instant::now();
        let compiler = Compiler::new(decl_type);
        let compile = |rule: &Rule| match effort.is_spent() {
            true => CompiledRule {
                error: Some(RuleError(CompileEffort::SPENT.to_owned())),
                ..CompiledRule::default()
            },
            false => {
                let compiled = compiler.compile(self, rule, preexisting);
                effort.rule(rule, &compiled);
                compiled
            }
        };
        let compiled = rules.iter().map(compile).collect();
        metrics::compiled(started.elapsed());
        Some(compiled)
    }

    pub(super) fn new(schema: &'s Arena, node: &'s Node, decl_type: Option<Arc<DeclType>>) -> RuleScope<'s> {
        RuleScope { schema, node, decl_type }
    }
}

/// The environments for the rules of one position.
struct Compiler {
    decl_type: Arc<DeclType>,
    /// With `oldSelf` as a plain value.
    environment: Environment,
    /// With `oldSelf` as an optional value.
    optional_environment: Environment,
}

impl Compiler {
    fn new(decl_type: &Arc<DeclType>) -> Compiler {
        let own = decl_type.self_type();
        let types = Arc::new(Fields(Arc::clone(decl_type)));
        let environment = Environment::new().with_types(types).with_variable(SELF, own.clone());
        let optional = Type::optional(own.clone());
        Compiler {
            decl_type: Arc::clone(decl_type),
            optional_environment: environment.clone().with_variable(OLD_SELF, optional),
            environment: environment.with_variable(OLD_SELF, own),
        }
    }

    fn compile(
        &self,
        scope: &RuleScope<'_>,
        rule: &Rule,
        preexisting: &PreexistingExpressions,
    ) -> CompiledRule {
        let mut compiled = CompiledRule::default();
        if rule.rule.trim().is_empty() {
            return compiled;
        }
        let environment = match rule.optional_old_self {
            Some(true) => &self.optional_environment,
            _ => &self.environment,
        };
        let of_rule = environment.clone().of_type(preexisting.of_rule(&rule.rule));
        let program = match self.program(&of_rule, &rule.rule, &Type::Bool) {
            Ok(program) => program,
            Err(failure) => {
                let detail = match failure {
                    Failure::Compile(errors) => match errors.stage() {
                        Stage::Compilation => format!("compilation failed: {errors}"),
                        Stage::Instantiation => format!("program instantiation failed: {errors}"),
                    },
                    Failure::Type => "cel expression must evaluate to a bool".to_owned(),
                };
                compiled.error = Some(RuleError(detail));
                return compiled;
            }
        };
        compiled.uses_old_self = program.ast().uses_variable(OLD_SELF);
        compiled.max_cost = self.max_cost(&program);
        compiled.max_cardinality = self.decl_type.max_cardinality();
        compiled.program = Some(program);
        if !rule.message_expression.is_empty() {
            let message_expression = &rule.message_expression;
            let of_message = environment.clone().of_type(preexisting.of_message(message_expression));
            match self.program(&of_message, message_expression, &Type::String) {
                Ok(program) => {
                    compiled.message_expression_max_cost = self.max_cost(&program);
                    compiled.message_expression = Some(program);
                }
                Err(failure) => {
                    let detail = match failure {
                        Failure::Compile(errors) => match errors.stage() {
                            Stage::Compilation => format!("messageExpression compilation failed: {errors}"),
                            Stage::Instantiation => {
                                format!("messageExpression instantiation failed: {errors}")
                            }
                        },
                        Failure::Type => "messageExpression must evaluate to a string".to_owned(),
                    };
                    compiled.message_expression_error = Some(RuleError(detail));
                    return compiled;
                }
            }
        }
        if !rule.field_path.is_empty() {
            let path = field_path::normalize(scope.schema, scope.node, &rule.field_path);
            compiled.field_path = path.unwrap_or_default();
        }
        compiled
    }

    fn program(&self, environment: &Environment, source: &str, result: &Type) -> Result<Program, Failure> {
        let program = environment.compile(source).map_err(|errors| match errors.result_type() {
            // A wrong type is told before an instantiation that fails.
            Some(found) if found != result => Failure::Type,
            _ => Failure::Compile(errors),
        })?;
        if program.result_type() != result {
            return Err(Failure::Type);
        }
        Ok(program)
    }

    fn max_cost(&self, program: &Program) -> u64 {
        estimate_cost(program.ast(), &*self.decl_type).max
    }
}

enum Failure {
    Compile(CompileErrors),
    Type,
}

impl SizeEstimator for DeclType {
    fn size(&self, path: &[Rc<str>], _value_type: &Type) -> Option<Estimate> {
        let max = self.max_elements(path.iter().map(|step| &**step))?;
        Some(Estimate { min: 0, max })
    }
}
