//! Ordering operators: numbers across their types, and values of one ordered type.

use super::Value;
use super::number::{compare_double_int, compare_double_uint, compare_doubles, compare_int_uint};
use crate::EvaluationError;
use crate::work;
use std::cmp::Ordering;

impl Value<'_> {
    /// Whether the value's type is ordered.
    pub(crate) fn is_comparable(&self) -> bool {
        matches!(
            self,
            Value::Bool(_)
                | Value::Int(_)
                | Value::Uint(_)
                | Value::Double(_)
                | Value::String(_)
                | Value::Bytes(_)
                | Value::Timestamp(_)
                | Value::Duration(_)
        )
    }

    /// Compares the value with another one of the same type, or with another number.
    ///
    /// # Errors
    /// When the two values have no order.
    pub fn compare(&self, other: &Value<'_>) -> Result<Ordering, EvaluationError> {
        let not_a_number = |value: &Value<'_>| matches!(value, Value::Double(double) if double.is_nan());
        if matches!(self, Value::Int(_) | Value::Uint(_) | Value::Double(_))
            && (not_a_number(self) || not_a_number(other))
        {
            return Err("NaN values cannot be ordered".into());
        }
        Ok(match (self, other) {
            (Value::Bool(one), Value::Bool(other)) => one.cmp(other),
            (Value::Int(one), Value::Int(other)) => one.cmp(other),
            (Value::Uint(one), Value::Uint(other)) => one.cmp(other),
            (Value::Double(one), Value::Double(other)) => compare_doubles(*one, *other),
            (Value::Int(one), Value::Uint(other)) => compare_int_uint(*one, *other),
            (Value::Uint(one), Value::Int(other)) => compare_int_uint(*other, *one).reverse(),
            (Value::Double(one), Value::Int(other)) => compare_double_int(*one, *other),
            (Value::Int(one), Value::Double(other)) => compare_double_int(*other, *one).reverse(),
            (Value::Double(one), Value::Uint(other)) => compare_double_uint(*one, *other),
            (Value::Uint(one), Value::Double(other)) => compare_double_uint(*other, *one).reverse(),
            (Value::String(one), Value::String(other)) => {
                work::note_bytes(one.len().min(other.len()));
                one.as_str().cmp(other.as_str())
            }
            (Value::Bytes(one), Value::Bytes(other)) => one.cmp(other),
            (Value::Timestamp(one), Value::Timestamp(other)) => one.compare(*other),
            (Value::Duration(one), Value::Duration(other)) => one.cmp(other),
            _ => return Err(EvaluationError::NO_SUCH_OVERLOAD),
        })
    }
}
