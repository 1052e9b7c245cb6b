//! What the functions of the language do, by name and by the types of their arguments at run time.
//!
//! Overloads are told apart by looking at the values: the checker has made sure that one fits wherever types are known,
//! and where they are not (`dyn`) this is what the reference does too. Two things bound what a call can take beyond its
//! cost: texts and lists that a call makes have a largest size, and deep comparisons a largest number of steps.

mod arithmetic;
mod authorization;
mod collections;
mod conversions;
mod format;
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
mod url;

pub use ip::Cidr;
pub use named_format::NamedFormat;
pub use semver::Semver;
pub use url::Url;

pub(crate) use arithmetic::add;

pub(crate) use regex::{find, find_all, matches};

use crate::EvaluationError;
use crate::value::Value;
use crate::work;

/// What a function does with its arguments; the target of a method is the first one.
pub(crate) type Function = for<'a> fn(&mut [Value<'a>]) -> Result<Value<'a>, EvaluationError>;

/// The longest text a call may make. Only texts far larger than any budget can read are longer.
pub(crate) const MAX_TEXT_LENGTH: usize = 16 << 20;

/// The function of a name. `overload` is the one the checker settled on, if it did; it matters where arguments alone
/// do not tell (the sum of an empty list).
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

/// What a call says whose arguments fit no overload.
pub(crate) fn no_such_overload(name: &str, args: &[Value<'_>]) -> EvaluationError {
    let types: Vec<_> = args.iter().map(Value::type_name).collect();
    EvaluationError::failed(format!("no such overload: {name}({})", types.join(", ")))
}

/// An error if a text is longer than a call may make.
fn bounded(length: usize) -> Result<(), EvaluationError> {
    work::note_bytes(length);
    if length > MAX_TEXT_LENGTH { Err(EvaluationError::CostLimitExceeded) } else { Ok(()) }
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
        // What is more than a function of its arguments is part of the plan.
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
