//! Decides whether types are assignable, and infers type variables.

use crate::types::Type;
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

/// The maximum number of steps on the types of an expression. Types double with each `map(x, {x: x})`, so the cost of a
/// short text would be unbounded.
const MAX_STEPS: usize = 4_000_000;
/// The maximum size of the type of a node, in nested types.
const MAX_SIZE: usize = 10_000;

/// The inferred types of type variables.
#[derive(Default)]
pub(super) struct Substitutions {
    found: HashMap<Arc<str>, Type>,
    /// The previous values of changed variables, to revert a failed attempt.
    trail: Vec<(Arc<str>, Option<Type>)>,
    steps: Cell<usize>,
}

impl Substitutions {
    pub(super) fn bind(&mut self, name: &Arc<str>, found: Type) {
        let before = self.found.insert(Arc::clone(name), found);
        self.trail.push((Arc::clone(name), before));
    }

    /// Whether the step limit is reached.
    pub(super) fn exhausted(&self) -> bool {
        self.steps.get() >= MAX_STEPS
    }

    fn step(&self) -> bool {
        self.steps.set(self.steps.get().saturating_add(1));
        !self.exhausted()
    }

    /// Returns the type, unless it exceeds the maximum size.
    pub(super) fn limited(&self, of_node: Type) -> Type {
        fn size(of_node: &Type, left: usize) -> usize {
            let mut total = 1;
            for parameter in of_node.parameters() {
                if total > left {
                    break;
                }
                total += size(parameter, left - total);
            }
            total
        }
        if size(&of_node, MAX_SIZE) > MAX_SIZE {
            self.steps.set(MAX_STEPS);
            return Type::Error;
        }
        of_node
    }

    /// Substitutes the inferred variables in a type; with `finally`, the others become `dyn`.
    pub(super) fn apply(&self, to: &Type, finally: bool) -> Type {
        if !self.step() {
            return Type::Error;
        }
        match to {
            Type::Parameter(name) => match self.found.get(name) {
                Some(found) => self.apply(found, finally),
                None if finally => Type::Dyn,
                None => to.clone(),
            },
            Type::List(element) => Type::list(self.apply(element, finally)),
            Type::Map(entry) => Type::map(self.apply(&entry.0, finally), self.apply(&entry.1, finally)),
            Type::Opaque(name, parameters) if !parameters.is_empty() => {
                let parameters = parameters.iter().map(|parameter| self.apply(parameter, finally)).collect();
                Type::Opaque(Arc::clone(name), parameters)
            }
            Type::Type(Some(parameter)) => Type::Type(Some(Arc::new(self.apply(parameter, finally)))),
            _ => to.clone(),
        }
    }

    /// Whether `from` is assignable to `to` for some types of the variables; then infers these types.
    pub(super) fn assign(&mut self, from: &Type, to: &Type) -> bool {
        self.attempt(|this| this.fits(from, to))
    }

    /// As [`Substitutions::assign`], for each pair of two lists of types.
    pub(super) fn assign_all(&mut self, from: &[Type], to: &[Type]) -> bool {
        self.attempt(|this| this.all_fit(from, to))
    }

    fn attempt(&mut self, fits: impl FnOnce(&mut Self) -> bool) -> bool {
        self.trail.clear();
        let fits = fits(self);
        if !fits {
            while let Some((name, before)) = self.trail.pop() {
                match before {
                    Some(before) => self.found.insert(name, before),
                    None => self.found.remove(&name),
                };
            }
        }
        fits
    }

    fn all_fit(&mut self, from: &[Type], to: &[Type]) -> bool {
        from.len() == to.len() && from.iter().zip(to).all(|(from, to)| self.fits(from, to))
    }

    fn fits(&mut self, from: &Type, to: &Type) -> bool {
        if !self.step() {
            return true;
        }
        if let Type::Parameter(name) = to {
            match self.fits_variable(from, to, name) {
                Fit::Fits => return true,
                Fit::Known => return false,
                // The reverse direction may still fit.
                Fit::Unknown => {}
            }
        }
        match (from, to) {
            (Type::Parameter(name), _) => matches!(self.fits_variable(to, from, name), Fit::Fits),
            (Type::Dyn | Type::Any | Type::Error, _) | (_, Type::Dyn | Type::Any | Type::Error) => true,
            (Type::Null, other) | (other, Type::Null) => {
                use Type::{Duration, Null, Object, Opaque, Timestamp};
                matches!(other, Opaque(..) | Object(_) | Duration | Timestamp | Null)
            }
            (Type::Type(_), Type::Type(_)) => true,
            (Type::List(from), Type::List(to)) => self.fits(from, to),
            (Type::Map(from), Type::Map(to)) => self.fits(&from.0, &to.0) && self.fits(&from.1, &to.1),
            (Type::Opaque(name, from), Type::Opaque(expected, to)) => {
                name == expected && self.all_fit(from, to)
            }
            _ => from == to,
        }
    }

    /// Whether a type fits a type variable.
    fn fits_variable(&mut self, of_value: &Type, variable: &Type, name: &Arc<str>) -> Fit {
        if of_value == variable {
            return Fit::Fits;
        }
        if let Some(known) = self.found.get(name).cloned() {
            if *of_value == known {
                return Fit::Fits;
            }
            if !self.fits(of_value, &known) {
                return Fit::Known;
            }
            let general = if is_less_specific(of_value, &known) { of_value } else { &known };
            if !self.occurs(variable, general) {
                let general = general.clone();
                self.bind(name, general);
            }
            return Fit::Fits;
        }
        if self.occurs(variable, of_value) {
            return Fit::Unknown;
        }
        self.bind(name, of_value.clone());
        Fit::Fits
    }

    /// Whether a variable occurs in a type: a variable cannot be inferred as a type that contains it.
    fn occurs(&self, variable: &Type, within: &Type) -> bool {
        if !self.step() || variable == within {
            return true;
        }
        match within {
            Type::Parameter(name) => self.found.get(name).is_some_and(|found| self.occurs(variable, found)),
            _ => within.parameters().into_iter().any(|parameter| self.occurs(variable, parameter)),
        }
    }
}

/// The relation of a type to a variable.
enum Fit {
    /// The variable is, or was inferred as, the type or a more general one.
    Fits,
    /// The variable is inferred as another type.
    Known,
    /// The variable occurs in the type.
    Unknown,
}

/// Whether `one` equals `other`, or is `other` with `dyn` for some parts.
pub(super) fn is_less_specific(one: &Type, other: &Type) -> bool {
    match (one, other) {
        (Type::Dyn | Type::Any | Type::Parameter(_), _) => true,
        (_, Type::Dyn | Type::Any | Type::Parameter(_)) => false,
        (Type::Opaque(name, one), Type::Opaque(other_name, other)) => {
            name == other_name
                && one.len() == other.len()
                && one.iter().zip(other.iter()).all(|(one, other)| is_less_specific(one, other))
        }
        (Type::List(one), Type::List(other)) => is_less_specific(one, other),
        (Type::Map(one), Type::Map(other)) => {
            is_less_specific(&one.0, &other.0) && is_less_specific(&one.1, &other.1)
        }
        (Type::Type(_), Type::Type(_)) => true,
        _ => one == other,
    }
}
