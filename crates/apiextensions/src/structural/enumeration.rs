//! Tests values against `enum`.

use std::collections::HashSet;
use std::sync::OnceLock;

use pintle_machinery::Value;

use super::number::{code_point, converts_to, truncate};
use super::run::Run;

/// The maximum number of values that are compared one by one.
const LOOKED_THROUGH: usize = 32;

/// Allowed values, of which there may be very many.
#[derive(Debug)]
pub(crate) struct Enumeration {
    /// Range in the values.
    pub(super) values: Run,
    /// Built on first use.
    index: OnceLock<Box<Index>>,
}

/// The allowed values, by the type they are compared as.
#[derive(Debug, Default)]
struct Index {
    integers: HashSet<i64>,
    /// By their bits.
    doubles: HashSet<u64>,
    others: HashSet<Value>,
}

impl Enumeration {
    pub(super) fn new(values: Run) -> Enumeration {
        Enumeration { values, index: OnceLock::new() }
    }

    /// The number of comparisons, or of computed hashes, that [`Enumeration::allows`] makes.
    pub(super) fn comparisons(&self, values: &[Value]) -> usize {
        if values.len() <= LOOKED_THROUGH { values.len() } else { 1 }
    }

    /// Whether a value is among the allowed values, after conversion to its type.
    pub(super) fn allows(&self, values: &[Value], value: &Value) -> bool {
        match values.len() <= LOOKED_THROUGH {
            true => values.iter().any(|allowed| converts_to(value, allowed)),
            false => self.index.get_or_init(|| Box::new(Index::new(values))).allows(value),
        }
    }
}

impl Index {
    fn new(values: &[Value]) -> Index {
        let mut index = Index::default();
        for value in values {
            match value {
                Value::Null => {}
                Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                    (Some(integer), _) => drop(index.integers.insert(integer)),
                    (None, Some(double)) => drop(index.doubles.insert(bits(double))),
                    (None, None) => {}
                },
                other => drop(index.others.insert(other.clone())),
            }
        }
        index
    }

    /// The same result as [`converts_to`] on each of the values.
    fn allows(&self, value: &Value) -> bool {
        let Value::Number(number) = value else {
            return self.others.contains(value);
        };
        let double = number.as_f64();
        let integer = number.as_i64().or_else(|| double.map(|double| truncate(double.trunc())));
        integer.is_some_and(|integer| self.integers.contains(&integer))
            || double.is_some_and(|double| self.doubles.contains(&bits(double)))
            || number
                .as_i64()
                .is_some_and(|code| self.others.contains(&Value::from(code_point(code).to_string())))
    }
}

/// The bits of a double; positive and negative zero are equal.
fn bits(double: f64) -> u64 {
    (double + 0.0).to_bits()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn the_index_finds_the_same_values_as_comparisons() {
        let values = json!([1, -7, 104, 0, -0.0, 2.5, 1e300, u64::MAX, "h", "a", "\u{fffd}", true, null, [1], {"a": 1.5}]);
        let values = values.as_array().unwrap();
        let index = Index::new(values);
        let mut asked = values.clone();
        asked.extend(
            json!([2, 1.0, 1.5, 104.0, 2.0, -7.9, 97, -1, 0.0, "b", false, [1.0], [], {"a": 1}, 9e18, 1e19, i64::MIN])
                .as_array()
                .unwrap()
                .iter()
                .cloned(),
        );
        for value in asked {
            let expected = values.iter().any(|allowed| converts_to(&value, allowed));
            assert_eq!(index.allows(&value), expected, "{value}");
        }
    }
}
