//! Tells patterns whose matching is cheap on a text from those whose matching is expensive.

use super::limits::{CACHE_LIMIT, LETTERS_NEST_LIMIT, SIZE_LIMIT};
use parking_lot::Mutex;
use regex_automata::{
    Input,
    hybrid::dfa::{Cache, DFA},
    nfa::thompson,
    util::syntax,
};
use std::sync::OnceLock;

/// The mean number of bytes that a state of the automaton has to be used for, once the cache was full. To build one costs as
/// much as to compare a character with all positions of the pattern.
const BYTES_PER_STATE: usize = 10;
/// The number of times that the cache has to be full before matching can be expensive.
const FULL_BEFORE: usize = 3;

/// A deterministic automaton of a pattern, whose states are built while it reads texts, and kept. Common patterns soon need no
/// new ones, and read a character in constant time; others, such as `(a|b)*a(a|b){500}`, need a new one for each character.
#[derive(Debug)]
pub(super) struct Gauge {
    automaton: OnceLock<Option<(DFA, Mutex<Cache>)>>,
}

impl Gauge {
    pub(super) fn new() -> Gauge {
        Gauge { automaton: OnceLock::new() }
    }

    /// Whether each state that reading this text takes is used for many characters. `pattern` and `is_unicode` are
    /// the same in each call.
    pub(super) fn is_cheap(&self, pattern: &str, is_unicode: bool, text: &[u8]) -> bool {
        let Some((automaton, cache)) = self.automaton.get_or_init(|| build(pattern, is_unicode)) else {
            return false;
        };
        let input = Input::new(text);
        let found = match cache.try_lock() {
            Some(mut cache) => automaton.try_search_fwd(&mut cache, &input),
            // Another thread reads a text meanwhile, which may be long.
            None => automaton.try_search_fwd(&mut automaton.create_cache(), &input),
        };
        found.is_ok()
    }
}

fn build(pattern: &str, is_unicode: bool) -> Option<(DFA, Mutex<Cache>)> {
    let syntax = syntax::Config::new().unicode(is_unicode).utf8(is_unicode).nest_limit(LETTERS_NEST_LIMIT);
    let automaton = DFA::builder()
        .syntax(syntax)
        .thompson(thompson::Config::new().utf8(is_unicode).nfa_size_limit(Some(SIZE_LIMIT)))
        .configure(
            DFA::config()
                .cache_capacity(CACHE_LIMIT)
                .skip_cache_capacity_check(true)
                .minimum_cache_clear_count(Some(FULL_BEFORE))
                .minimum_bytes_per_state(Some(BYTES_PER_STATE)),
        )
        .build(pattern)
        .ok()?;
    let cache = Mutex::new(automaton.create_cache());
    Some((automaton, cache))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_that_need_a_state_for_each_character_are_expensive() {
        let text = |length: usize| -> Vec<u8> {
            // No period, so that no state comes twice.
            let mut state = 1_u32;
            let mut next = || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                if state >> 31 == 0 { b'a' } else { b'b' }
            };
            (0..length).map(|_| next()).collect()
        };
        let long = text(100_000);
        let expensive = Gauge::new();
        assert!(!expensive.is_cheap("(a|b)*a(a|b){200}c", true, &long));
        let expensive = Gauge::new();
        let shorts = (0..1000).map(|_| "a".repeat(900));
        let cheap =
            shorts.filter(|text| expensive.is_cheap("^(a?){900}a{900}$", true, text.as_bytes())).count();
        assert!(cheap < 100, "{cheap}");
        let common = Gauge::new();
        assert!(common.is_cheap("^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$", true, &long));
        for number in 0..10_000 {
            let name = format!("a-{number}-name-{number}.of-{number}");
            let pattern = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$";
            assert!(common.is_cheap(pattern, true, name.as_bytes()), "{name}");
        }
    }
}
