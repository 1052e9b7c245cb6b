//! Implements the functions of the language, by name and by the types of their arguments at run time.
//!
//! Overloads are selected by the values: where types are known the checker has ensured that one fits, and where they
//! are not (`dyn`) the reference selects in the same way. Two bounds limit a call beyond its cost: the size of texts
//! and lists that a call builds, and the number of steps of a deep comparison.

mod arithmetic;
mod authorization;
mod collections;
mod conversions;
mod format;
mod function;
mod ip;
mod kubernetes;
mod lists;
mod named_format;
mod optional;
mod regex;
mod semver;
mod sets;
mod strings;
mod time;

pub use named_format::NamedFormat;
pub use semver::Semver;

pub(crate) use arithmetic::add;
pub(crate) use collections::MAX_INCLUDED;
pub(crate) use function::{Function, bounded, no_such_overload};
pub(crate) use regex::{find, find_all, matches};

/// The implementation of a function. `overload` is the one that the checker selected, or empty; it is needed where the
/// arguments are ambiguous (the sum of an empty list).
pub(crate) fn lookup(name: &str, overload: &str) -> Option<Function> {
    arithmetic::lookup(name)
        .or_else(|| collections::lookup(name))
        .or_else(|| conversions::lookup(name))
        .or_else(|| strings::lookup(name))
        .or_else(|| time::lookup(name))
        .or_else(|| lists::lookup(name, overload))
        .or_else(|| sets::lookup(name))
        .or_else(|| optional::lookup(name))
        .or_else(|| kubernetes::lookup(name))
        .or_else(|| regex::lookup(name))
        .or_else(|| authorization::lookup(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ast::operators::{
        CONDITIONAL, EQUALS, INDEX, LOGICAL_AND, LOGICAL_OR, NOT_EQUALS, NOT_STRICTLY_FALSE, OPTIONAL_INDEX,
        OPTIONAL_SELECT,
    };
    use crate::declarations::Declarations;

    #[test]
    fn every_declared_function_does_something() {
        // These are not functions of their arguments; the planner implements them.
        let planned = [
            CONDITIONAL,
            EQUALS,
            INDEX,
            LOGICAL_AND,
            LOGICAL_OR,
            NOT_EQUALS,
            NOT_STRICTLY_FALSE,
            OPTIONAL_INDEX,
            OPTIONAL_SELECT,
            "or",
            "orValue",
        ];
        for (name, overloads) in Declarations::kubernetes().functions() {
            if planned.contains(&name) {
                continue;
            }
            for overload in overloads {
                assert!(lookup(name, overload.id).is_some(), "{name} {}", overload.id);
            }
        }
    }
}
