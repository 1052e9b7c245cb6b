//! Compiles and evaluates the CEL expressions on claims and users.

use pintle_cel::{
    Activation, Environment, Program, Stage, Value as CelValue,
    ast::{Expr, ExprKind, Literal, operators},
    types::{ObjectTypes, Type},
};
use pintle_machinery::Value;
use std::sync::{Arc, LazyLock};

/// A compiled expression with its text.
#[derive(Debug)]
pub(crate) struct Expression {
    pub(crate) text: String,
    program: Program,
}

/// The compiled expressions of an issuer. The cost of one evaluation is bounded by Kubernetes' limit per call.
#[derive(Debug, Default)]
pub struct Expressions {
    pub(crate) username: Option<Expression>,
    pub(crate) groups: Option<Expression>,
    pub(crate) uid: Option<Expression>,
    /// The expressions of extra fields, by key.
    pub(crate) extra: Vec<(String, Expression)>,
    /// The claim rules, with the messages of their failures.
    pub(crate) claim_validation_rules: Vec<(Expression, String)>,
    /// The user rules, with the messages of their failures.
    pub(crate) user_validation_rules: Vec<(Expression, String)>,
}

/// The cost budget of one evaluation: Kubernetes' limit per call.
const BUDGET: u64 = 1_000_000;

/// The variable of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variable {
    Claims,
    User,
}

static CLAIMS: LazyLock<Environment> =
    LazyLock::new(|| Environment::new().with_variable("claims", Type::map(Type::String, Type::Any)));

static USER: LazyLock<Environment> = LazyLock::new(|| {
    let mut types = ObjectTypes::default();
    let fields = [
        ("username", Type::String),
        ("uid", Type::String),
        ("groups", Type::list(Type::String)),
        ("extra", Type::map(Type::String, Type::list(Type::String))),
    ];
    types.insert("kubernetes.UserInfo", fields.map(|(name, of)| (name.into(), of)));
    Environment::new().with_types(Arc::new(types)).with_variable("user", Type::object("kubernetes.UserInfo"))
});

impl Expression {
    /// Compiles a text; a rule has to be of type boolean.
    pub(crate) fn compile(text: &str, variable: Variable, is_rule: bool) -> Result<Expression, String> {
        let environment = match variable {
            Variable::Claims => &CLAIMS,
            Variable::User => &USER,
        };
        let program = environment.compile(text).map_err(|errors| match errors.stage() {
            Stage::Compilation => format!("compilation failed: {errors}"),
            Stage::Instantiation => format!("program instantiation failed: {errors}"),
        })?;
        if is_rule && *program.result_type() != Type::Bool {
            return Err("must evaluate to bool".to_owned());
        }
        Ok(Expression { text: text.to_owned(), program })
    }

    /// Whether the expression reads a claim.
    pub(crate) fn uses_claim(&self, claim: &str) -> bool {
        selects(self.program.ast().expr(), "claims", claim)
    }

    /// Evaluates the expression on claims or a user, and passes the result, which borrows from them, to `then`.
    pub(crate) fn evaluate<T>(
        &self,
        variable: Variable,
        value: &Value,
        then: impl FnOnce(CelValue<'_>) -> Result<T, String>,
    ) -> Result<T, String> {
        let name = match variable {
            Variable::Claims => "claims",
            Variable::User => "user",
        };
        let activation = Activation::new().with(name, CelValue::from_json(value));
        let mut budget = BUDGET;
        let result = self.program.evaluate(&activation, &mut budget);
        then(result.map_err(|error| format!("expression '{}' resulted in error: {error}", self.text))?)
    }
}

/// Whether the tree contains `operand.field`.
fn selects(tree: &Expr, operand: &str, field: &str) -> bool {
    let is_operand = |tree: &Expr| matches!(&tree.kind, ExprKind::Ident(name) if **name == *operand);
    let inside = |tree: &Expr| selects(tree, operand, field);
    match &tree.kind {
        ExprKind::Select(select) => {
            is_operand(&select.operand) && *select.field == *field || inside(&select.operand)
        }
        ExprKind::Call(call) => {
            let is_optional_select = call.target.is_none()
                && *call.function == *operators::OPTIONAL_SELECT
                && match call.args.as_slice() {
                    [of, name] => is_operand(of) && is_text(name, field),
                    _ => false,
                };
            is_optional_select || call.target.as_deref().is_some_and(inside) || call.args.iter().any(inside)
        }
        ExprKind::List(list) => list.elements.iter().any(inside),
        ExprKind::Map(entries) => entries.iter().any(|entry| inside(&entry.key) || inside(&entry.value)),
        ExprKind::Struct(of) => of.fields.iter().any(|own| inside(&own.value)),
        ExprKind::Comprehension(fold) => {
            [&fold.range, &fold.initial, &fold.condition, &fold.step, &fold.result].into_iter().any(inside)
        }
        _ => false,
    }
}

fn is_text(tree: &Expr, text: &str) -> bool {
    matches!(&tree.kind, ExprKind::Literal(Literal::String(own)) if **own == *text)
}

/// Converts a tree for expressions: numbers are doubles, as Go decodes JSON, and members whose names are not CEL
/// identifiers are added under their escaped names.
pub(crate) fn visible(value: &Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().map_or(Value::Null, Value::from),
        Value::Array(items) => items.iter().map(visible).collect(),
        Value::Object(members) => {
            let mut seen = pintle_machinery::Map::new();
            for (name, value) in members {
                let value = visible(value);
                if let Some(escaped) = pintle_cel::escape(name).filter(|escaped| **escaped != **name) {
                    seen.insert(escaped.into_owned(), value.clone());
                }
                seen.insert(name.clone(), value);
            }
            Value::Object(seen)
        }
        other => other.clone(),
    }
}
