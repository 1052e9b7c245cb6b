//! The inputs of an evaluation: the variables.

use crate::value::Value;
use std::fmt;

/// The values of variables.
#[derive(Clone, Default)]
pub struct Activation<'a> {
    variables: Vec<(&'a str, Value<'a>)>,
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

    pub(super) fn get(&self, name: &str) -> Option<&Value<'a>> {
        self.variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }
}

impl fmt::Debug for Activation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Activation").field("variables", &self.variables).finish()
    }
}
