//! The inputs of an evaluation: the variables.

use crate::value::Value;
use std::fmt;

/// The values of variables, and a callback for interruption.
#[derive(Clone, Default)]
pub struct Activation<'a> {
    variables: Vec<(&'a str, Value<'a>)>,
    interrupted: Option<&'a (dyn Fn() -> bool + Sync)>,
}

impl<'a> Activation<'a> {
    /// No variables.
    pub fn new() -> Activation<'a> {
        Activation::default()
    }

    /// Sets a variable, replacing one of the same name.
    pub fn with(mut self, name: &'a str, value: Value<'a>) -> Activation<'a> {
        match self.variables.iter_mut().find(|(known, _)| *known == name) {
            Some((_, place)) => *place = value,
            None => self.variables.push((name, value)),
        }
        self
    }

    /// Interrupts the evaluation when the function returns true; it is called every hundred iterations of a macro.
    pub fn interrupted_by(mut self, interrupted: &'a (dyn Fn() -> bool + Sync)) -> Activation<'a> {
        self.interrupted = Some(interrupted);
        self
    }

    pub(super) fn get(&self, name: &str) -> Option<&Value<'a>> {
        self.variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    pub(super) fn is_interrupted(&self) -> bool {
        self.interrupted.is_some_and(|interrupted| interrupted())
    }
}

impl fmt::Debug for Activation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Activation").field("variables", &self.variables).finish_non_exhaustive()
    }
}
