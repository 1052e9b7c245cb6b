//! Compiling rules, for definitions that are written and for objects.
//!
//! A [`RuleScope`] is a place in a schema that rules may stand at; the scopes of what is below come from it, so that types are
//! worked out once. What compiling finds wrong is returned, with the texts that clients see.

use std::rc::Rc;
use std::sync::Arc;

use pintle_cel::estimate::{Estimate, SizeEstimator, estimate_cost};
use pintle_cel::{CompileErrors, Environment, Program, Stage, types::Type};

use super::compile_effort::CompileEffort;
use super::decl_type::{DeclType, Fields};
use super::{OLD_SELF, SELF, field_path};
use crate::structural::StructuralSchema;
use crate::structural::node::{Flags, Node, Rule};

/// What a rule may cost each time it is run (<https://kubernetes.io/docs/reference/using-api/cel/#resource-constraints>).
pub(super) const PER_CALL_LIMIT: u64 = 1_000_000;

/// A compiled rule.
#[derive(Debug, Default)]
pub struct CompiledRule {
    /// Why the rule cannot be used.
    pub error: Option<RuleError>,
    /// The rule; `None` when it is empty or wrong.
    pub program: Option<Program>,
    /// Whether the rule compares with the state before: it uses `oldSelf`.
    pub uses_old_self: bool,
    /// What one run costs at most, by estimate.
    pub max_cost: u64,
    /// How often the rule can be run for one object where nothing in the schema says so.
    pub max_cardinality: u64,
    /// Why the expression that makes the message cannot be used.
    pub message_expression_error: Option<RuleError>,
    /// The expression that makes the message.
    pub message_expression: Option<Program>,
    /// What one message costs at most, by estimate.
    pub message_expression_max_cost: u64,
    /// The rule's `fieldPath` as it is put behind the path of the rule's place; empty for none.
    pub field_path: String,
}

/// Why an expression cannot be used: the detail of an invalid value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError(String);

impl RuleError {
    /// The text for clients.
    pub fn detail(&self) -> &str {
        &self.0
    }
}

/// A place in a schema with the type of its values.
#[derive(Clone, Debug)]
pub struct RuleScope<'s> {
    schema: &'s StructuralSchema,
    node: &'s Node,
    decl_type: Option<Arc<DeclType>>,
}

impl<'s> RuleScope<'s> {
    /// The scope of whole objects.
    pub fn root(schema: &'s StructuralSchema) -> RuleScope<'s> {
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

    /// What no expression of the parent can see may still have rules of its own.
    fn below(&self, node: &'s Node, known: Option<&Arc<DeclType>>) -> RuleScope<'s> {
        let resource = node.flags.has(Flags::EMBEDDED_RESOURCE);
        let decl_type = known.cloned().or_else(|| DeclType::of(self.schema, node, resource).map(Arc::new));
        RuleScope { schema: self.schema, node, decl_type }
    }

    /// The rules that the definition has at this place.
    pub fn rules(&self) -> &'s [Rule] {
        self.node.rules.of(&self.schema.rules)
    }

    /// Whether expressions can see values of this place. If not, rules here cannot be compiled.
    pub fn has_type(&self) -> bool {
        self.decl_type.is_some()
    }

    /// Compiles rules as if they stood here: those of the place itself, or of an `allOf` there. `None` when expressions
    /// cannot see values of this place.
    pub fn compile(&self, rules: &[Rule], effort: &CompileEffort) -> Option<Vec<CompiledRule>> {
        let decl_type = self.decl_type.as_ref()?;
        let compiler = Compiler::new(decl_type);
        let compile = |rule: &Rule| match effort.is_spent() {
            true => CompiledRule {
                error: Some(RuleError(CompileEffort::SPENT.to_owned())),
                ..CompiledRule::default()
            },
            false => {
                let compiled = compiler.compile(self, rule);
                effort.rule(rule, &compiled);
                compiled
            }
        };
        Some(rules.iter().map(compile).collect())
    }

    pub(super) fn new(
        schema: &'s StructuralSchema,
        node: &'s Node,
        decl_type: Option<Arc<DeclType>>,
    ) -> RuleScope<'s> {
        RuleScope { schema, node, decl_type }
    }
}

/// What rules of one place are compiled with.
struct Compiler {
    decl_type: Arc<DeclType>,
    /// With `oldSelf` as what it was.
    environment: Environment,
    /// With `oldSelf` as an optional.
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

    fn compile(&self, scope: &RuleScope<'_>, rule: &Rule) -> CompiledRule {
        let mut compiled = CompiledRule::default();
        if rule.rule.trim().is_empty() {
            return compiled;
        }
        let environment = match rule.optional_old_self {
            Some(true) => &self.optional_environment,
            _ => &self.environment,
        };
        let program = match self.program(environment, &rule.rule, &Type::Bool) {
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
            match self.program(environment, &rule.message_expression, &Type::String) {
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
        let program = environment.compile(source).map_err(Failure::Compile)?;
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
