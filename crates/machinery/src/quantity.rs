//! Quantities: exact decimal numbers with a suffix
//! (<https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/>).
//!
//! A quantity is `mantissa * 10^scale`. The mantissa is an `i64` for nearly all quantities; larger ones use a big
//! integer, never a float. Two rules of the API are surprising: a text in canonical form (a generous notion: `+1` and
//! `1.500` have it) is printed unchanged, and digits below a nano are rounded away from zero.

mod amount;
mod format;
mod parse;
#[cfg(test)]
mod tests;

use crate::Value;
use amount::Amount;
use format::{binary_suffix, decimal_suffix};
use parse::Parsed;
use std::cmp::Ordering;
use std::fmt;

pub use format::Format;
pub use parse::QuantityError;

/// An exact number with a preferred printed form. Comparison uses the number alone: `1` equals `1000m`.
#[derive(Debug, Clone, Default)]
pub struct Quantity {
    amount: Amount,
    format: Format,
    /// The exponent of the last digit of the decimal of any size as which Go would hold the number; `None` where it holds
    /// an `i64` and an exponent. Go takes no such decimal for an integer, and its conversions depend on the exponent.
    decimal_scale: Option<i64>,
    /// The original text, when it is in canonical form.
    text: Option<Box<str>>,
}

impl Quantity {
    /// Creates a whole number.
    pub fn new(value: i64, format: Format) -> Quantity {
        Quantity { amount: Amount::small(value, 0), format, decimal_scale: None, text: None }
    }

    /// Parses a quantity.
    ///
    /// # Errors
    /// [`QuantityError`], when the text is not a quantity.
    pub fn parse(text: &str) -> Result<Quantity, QuantityError> {
        let Parsed { amount, format, decimal_scale, is_canonical } = parse::parse(text)?;
        Ok(Quantity { amount, format, decimal_scale, text: is_canonical.then(|| text.into()) })
    }

    /// Parses a member of an object: a string or a number.
    ///
    /// # Errors
    /// [`QuantityError`], when the value is not a quantity.
    pub fn from_tree(value: &Value) -> Result<Quantity, QuantityError> {
        match value {
            Value::String(text) => Quantity::parse(text.trim()),
            Value::Null => Ok(Quantity::default()),
            other => Quantity::parse(&other.to_string()),
        }
    }

    /// The suffixes it is printed with.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Whether it is 0.
    pub fn is_zero(&self) -> bool {
        self.amount.sign() == 0
    }

    /// -1, 0 or 1.
    pub fn sign(&self) -> i32 {
        self.amount.sign()
    }

    /// The number, rounded up to a whole one. A number outside the range of `i64` becomes another one, as in Go; callers
    /// for which this matters compare quantities instead.
    pub fn value(&self) -> i64 {
        self.scaled_i64(0)
    }

    /// The number in thousandths, with the same caveat as [`Quantity::value`].
    pub fn milli_value(&self) -> i64 {
        self.scaled_i64(-3)
    }

    fn scaled_i64(&self, scale: i64) -> i64 {
        match self.decimal_scale {
            None => self.amount.scaled_i64(scale),
            Some(own) => self.amount.decimal_scaled_i64(own, scale),
        }
    }

    /// The number, if Go's `AsInt64` returns it: never for a text with a decimal point, nor for one that could be above
    /// `i64` by its number of digits.
    pub fn as_i64(&self) -> Option<i64> {
        self.amount.as_i64().filter(|_| self.decimal_scale.is_none())
    }

    /// The number as a float, approximate: the last digit is that of Go's computation.
    pub fn as_approximate_f64(&self) -> f64 {
        self.amount.as_f64(self.decimal_scale)
    }

    /// Rounds away from zero to a multiple of `10^scale`; returns whether the number was unchanged.
    pub fn round_up(&mut self, scale: i32) -> bool {
        let exact = self.amount.round_up(scale.into());
        if !exact {
            self.text = None;
        }
        exact
    }

    /// Adds the other quantity; zero takes the other's format.
    pub fn add(&mut self, other: &Quantity) {
        if self.is_zero() {
            self.format = other.format;
        }
        self.replace(self.amount.plus(&other.amount), other);
    }

    /// Subtracts the other quantity; zero takes the other's format.
    pub fn sub(&mut self, other: &Quantity) {
        if self.is_zero() {
            self.format = other.format;
        }
        self.replace(self.amount.plus(&other.amount.negated()), other);
    }

    fn replace(&mut self, amount: Amount, other: &Quantity) {
        self.text = None;
        if self.decimal_scale.is_some() || other.decimal_scale.is_some() || !amount.is_small() {
            let scale = |quantity: &Quantity| quantity.decimal_scale.unwrap_or(quantity.amount.scale());
            self.decimal_scale = Some(scale(self).min(scale(other)));
        }
        self.amount = amount;
    }

    /// Number and suffix in canonical form: the largest suffix that keeps the number whole, and no superfluous digits.
    fn canonical(&self) -> String {
        if self.is_zero() {
            return "0".to_owned();
        }
        let is_small = || {
            let bound = Amount::small(1024, 0);
            self.amount.compare(&bound) == Ordering::Less
                && self.amount.compare(&bound.negated()) == Ordering::Greater
        };
        let format = match self.format {
            // Binary suffixes would round small and fractional numbers.
            Format::BinarySi if is_small() || !self.amount.is_whole() => Format::DecimalSi,
            format => format,
        };
        match format {
            Format::BinarySi => {
                let (number, exponent) = self.amount.canonical_base1024();
                number + binary_suffix(exponent)
            }
            Format::DecimalSi => {
                let (number, exponent) = self.amount.canonical_base1000();
                number + decimal_suffix(exponent)
            }
            Format::DecimalExponent => match self.amount.canonical_base1000() {
                (number, 0) => number,
                (number, exponent) => format!("{number}e{exponent}"),
            },
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.text {
            Some(text) => f.write_str(text),
            None => f.write_str(&self.canonical()),
        }
    }
}

impl From<&Quantity> for Value {
    fn from(quantity: &Quantity) -> Value {
        Value::from(quantity.to_string())
    }
}

impl std::str::FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Quantity, QuantityError> {
        Quantity::parse(text)
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Quantity) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Quantity) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Quantity) -> Ordering {
        self.amount.compare(&other.amount)
    }
}
