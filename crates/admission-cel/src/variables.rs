//! The variables of policies: expressions that others read by name.

use crate::{Expression, Input, effort::Effort, types::VARIABLES_NAME};
use pintle_cel::{Activation, EvaluationError, LazyFields, Map, Value as CelValue};
use pintle_go_forms::quote;
use std::{
    collections::HashMap,
    fmt,
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

/// A variable.
#[derive(Debug)]
pub struct Variable {
    /// The name.
    pub name: Box<str>,
    /// The expression.
    pub expression: Expression,
}

/// The variables of a policy.
#[derive(Debug, Default)]
pub struct VariableSet {
    variables: Vec<Variable>,
    /// The positions by name; of variables of one name, the last.
    positions: HashMap<Box<str>, usize>,
}

impl VariableSet {
    pub(crate) fn new(variables: Vec<Variable>) -> VariableSet {
        let positions =
            variables.iter().enumerate().map(|(position, variable)| (variable.name.clone(), position));
        VariableSet { positions: positions.collect(), variables }
    }

    /// The variables in their order.
    pub fn variables(&self) -> &[Variable] {
        &self.variables
    }
}

/// The values of variables in one evaluation.
pub struct Variables<'p> {
    set: &'p VariableSet,
    values: Vec<Slot<'p>>,
    /// The activation of the variables' own expressions, which reads this value again.
    activation: OnceLock<Activation<'p>>,
    /// The cost of the values that were computed since it was read last.
    cost: AtomicU64,
    /// Whether the present attempt is one with [`Effort::Light`].
    is_light: AtomicBool,
}

#[derive(Default)]
struct Slot<'p> {
    value: OnceLock<Result<CelValue<'p>, EvaluationError>>,
    /// Whether the value is being computed. Variables of one name may depend on each other.
    pending: AtomicBool,
}

impl<'p> Variables<'p> {
    /// No variable has a value yet.
    pub fn new(set: &'p VariableSet) -> Variables<'p> {
        let values = set.variables.iter().map(|_| Slot::default()).collect();
        Variables {
            set,
            values,
            activation: OnceLock::new(),
            cost: AtomicU64::new(0),
            is_light: AtomicBool::new(false),
        }
    }

    /// The activation of all expressions of an evaluation with this input.
    pub(crate) fn activation(&'p self, input: &Input<'p>) -> &'p Activation<'p> {
        self.activation
            .get_or_init(|| input.activation().with(VARIABLES_NAME, CelValue::Map(Map::lazy(self))))
    }

    /// Begins an attempt to evaluate an expression. A value that takes too long for it ends the attempt, without effect.
    pub(crate) fn begin(&self, effort: Effort) {
        self.is_light.store(effort == Effort::Light, Ordering::Relaxed);
    }

    /// The cost of the values that were computed since the last call.
    pub(crate) fn take_cost(&self) -> u64 {
        self.cost.swap(0, Ordering::Relaxed)
    }

    fn evaluate(&self, variable: &'p Variable) -> Result<CelValue<'p>, EvaluationError> {
        let failed = |why: String| {
            EvaluationError::Failed(format!("composited variable {} {why}", quote(&variable.name)).into())
        };
        let program =
            variable.expression.program().map_err(|error| failed(format!("fails to compile: {error}")))?;
        let Some(activation) = self.activation.get() else {
            return Err(failed("is read before it has an input".to_owned()));
        };
        let effort = if self.is_light.load(Ordering::Relaxed) { Effort::Light } else { Effort::Full };
        let mut left = effort.cost();
        let value = program.evaluate(activation, &mut left);
        if effort == Effort::Light && matches!(value, Err(EvaluationError::CostLimitExceeded)) {
            return value;
        }
        self.cost.fetch_add(effort.cost() - left, Ordering::Relaxed);
        match value {
            Err(EvaluationError::Undecided) => Err(EvaluationError::Undecided),
            Err(error) => Err(failed(format!("fails to evaluate: {error}"))),
            Ok(value) => Ok(value),
        }
    }
}

impl LazyFields for Variables<'_> {
    fn field<'a>(&'a self, name: &str) -> Option<Result<CelValue<'a>, EvaluationError>> {
        let position = *self.set.positions.get(name)?;
        let (variable, slot) = (self.set.variables.get(position)?, self.values.get(position)?);
        if let Some(value) = slot.value.get() {
            return Some(value.clone());
        }
        if slot.pending.swap(true, Ordering::Relaxed) {
            let text = format!("composited variable {} depends on itself", quote(name));
            return Some(Err(EvaluationError::Failed(text.into())));
        }
        let value = self.evaluate(variable);
        slot.pending.store(false, Ordering::Relaxed);
        // The evaluation is repeated: when the decision is there, or with more effort.
        if !matches!(value, Err(EvaluationError::Undecided | EvaluationError::CostLimitExceeded)) {
            let _ = slot.value.set(value.clone());
        }
        Some(value)
    }
}

impl fmt::Debug for Variables<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.set.variables.iter().map(|variable| &variable.name);
        f.debug_list().entries(names).finish()
    }
}
