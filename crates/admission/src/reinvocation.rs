//! Defines [`Reinvocation`], the state of the rounds of mutating admission.

use std::any::Any;

/// The rounds of mutating admission of one request
/// (<https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#reinvocation-policy>).
///
/// All plugins are called once. If one of them asks for it, all are called once more; a plugin that calls webhooks or
/// policies selects the ones to be called again from the state that it has left here.
#[derive(Default)]
pub struct Reinvocation {
    is_second: bool,
    is_requested: bool,
    states: Vec<Box<dyn Any + Send + Sync>>,
}

impl Reinvocation {
    /// Whether this is the second round.
    pub fn is_second_round(&self) -> bool {
        self.is_second
    }

    /// Asks for the second round.
    pub fn request(&mut self) {
        self.is_requested = true;
    }

    /// Begins the second round if it was asked for. There is no third one.
    pub(crate) fn begin_second_round(&mut self) -> bool {
        let begins = self.is_requested && !self.is_second;
        self.is_second |= begins;
        begins
    }

    /// Takes the state that a plugin has left with [`Reinvocation::keep`], which is found by its type.
    pub fn take<T: Any + Send + Sync + Default>(&mut self) -> T {
        let place = self.states.iter().position(|state| state.is::<T>());
        let state = place.and_then(|place| self.states.swap_remove(place).downcast().ok());
        state.map(|state| *state).unwrap_or_default()
    }

    /// Keeps the state of a plugin for the second round.
    pub fn keep<T: Any + Send + Sync>(&mut self, state: T) {
        self.states.push(Box::new(state));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_two_rounds_at_most() {
        let mut reinvocation = Reinvocation::default();
        assert!(!reinvocation.begin_second_round());
        reinvocation.request();
        assert!(reinvocation.begin_second_round() && reinvocation.is_second_round());
        reinvocation.request();
        assert!(!reinvocation.begin_second_round());
    }

    #[test]
    fn plugins_keep_states_of_their_own() {
        let mut reinvocation = Reinvocation::default();
        reinvocation.keep(7_u32);
        reinvocation.keep("x".to_owned());
        assert_eq!((reinvocation.take::<u32>(), reinvocation.take::<String>()), (7, "x".to_owned()));
        assert_eq!(reinvocation.take::<u32>(), 0);
    }
}
