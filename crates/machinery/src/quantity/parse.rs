//! Parses quantities.

use super::amount::Amount;
use super::format::Format;
use num_bigint::BigInt;
use std::{borrow::Cow, cmp::Ordering};

/// The reasons why a text is not a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// The text does not have the form of a quantity.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    FormatWrong,
    /// The numeric part is malformed.
    #[error("unable to parse numeric part of quantity")]
    Numeric,
    /// The suffix is unknown.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

/// A number of decimal digits that always fits an `i64`.
const MAX_I64_DIGITS: i64 = 18;
/// The maximum number of digits without trailing zeros. Parsing and printing take time quadratic in the digits, and
/// practical quantities are far shorter.
const MAX_DIGITS: i64 = 1000;
/// The exponent of the smallest unit that is kept.
const NANO: i64 = -9;

/// The parts of a text. The numerator has no leading zeros and is "0" rather than empty.
struct Parts<'a> {
    negative: bool,
    numerator: &'a str,
    denominator: &'a str,
    suffix: &'a str,
}

/// The number and the form of a parsed text.
pub(super) struct Parsed {
    pub(super) amount: Amount,
    pub(super) format: Format,
    /// See [`super::Quantity`].
    pub(super) decimal_scale: Option<i64>,
    /// Whether the text is in canonical form, and so is printed unchanged.
    pub(super) is_canonical: bool,
}

pub(super) fn parse(text: &str) -> Result<Parsed, QuantityError> {
    if text.is_empty() {
        return Err(QuantityError::FormatWrong);
    }
    let Parts { negative, numerator, denominator, suffix } = split(text)?;
    let Suffix { exponent, format } = Suffix::parse(suffix).ok_or(QuantityError::Suffix)?;
    let (digits, fraction_digits) = (numerator.len() as i64, denominator.len() as i64);
    let zeros = match trailing_zeros(denominator) {
        zeros if zeros == fraction_digits => zeros + trailing_zeros(numerator),
        zeros => zeros,
    };
    let significant = digits + fraction_digits - zeros;
    // Printing adds up to two zeros, and the result must parse again; an exponent has 32 bits.
    if significant > MAX_DIGITS
        || digits + fraction_digits > MAX_DIGITS + 2
        || (significant > 0 && exponent - fraction_digits + zeros > i64::from(i32::MAX))
    {
        return Err(QuantityError::Numeric);
    }
    // A number that fits an `i64` is neither rounded nor capped, and may keep its text.
    let fits = match format {
        Format::DecimalExponent | Format::DecimalSi => digits + fraction_digits <= MAX_I64_DIGITS,
        Format::BinarySi => fraction_digits == 0 && 14 - digits - exponent * 3 / 10 >= 0,
    };
    let scale = match format {
        Format::BinarySi => 0,
        Format::DecimalExponent | Format::DecimalSi => exponent - fraction_digits,
    };
    if fits && scale >= NANO {
        let shifted = match denominator {
            "" => Cow::Borrowed(numerator),
            _ => Cow::Owned([numerator, denominator].concat()),
        };
        let value: i64 = shifted.parse().map_err(|_| QuantityError::Numeric)?;
        let factor = if format == Format::BinarySi { 1_i64 << exponent } else { 1 };
        if let Some(result) = value.checked_mul(factor) {
            let canonical = match format {
                Format::BinarySi => value & 7 != 0,
                _ => scale % 3 == 0 && !shifted.ends_with("000") && !shifted.starts_with('0'),
            };
            return Ok(Parsed {
                amount: Amount::small(if negative { -result } else { result }, scale),
                format,
                decimal_scale: None,
                is_canonical: canonical || text == "0",
            });
        }
    }
    let number = text.strip_suffix(suffix).unwrap_or_default();
    if !number.bytes().any(|byte| byte.is_ascii_digit()) {
        return Err(QuantityError::Numeric);
    }
    let unscaled: BigInt = format!("{numerator}{denominator}").parse().map_err(|_| QuantityError::Numeric)?;
    let mut amount = match format {
        Format::BinarySi => Amount::big(unscaled << exponent.max(0) as u64, -fraction_digits),
        _ => Amount::big(unscaled, exponent - fraction_digits),
    };
    amount.round_up(NANO);
    // Go rounds each number but zero to nanos, also one that has none.
    let mut decimal_scale = if amount.sign() == 0 { amount.scale() } else { NANO };
    let mut format = format;
    if format == Format::BinarySi {
        let max = Amount::small(i64::MAX, 0);
        if amount.compare(&max) == Ordering::Greater {
            amount = max;
            decimal_scale = 0;
        }
        if amount.sign() > 0 && amount.compare(&Amount::small(1, 0)) == Ordering::Less {
            format = Format::DecimalSi;
        }
    }
    let amount = if negative { amount.negated() } else { amount };
    Ok(Parsed { amount, format, decimal_scale: Some(decimal_scale), is_canonical: false })
}

fn split(text: &str) -> Result<Parts<'_>, QuantityError> {
    let (negative, rest) = match text.as_bytes().first() {
        Some(b'-') => (true, text.get(1..).unwrap_or_default()),
        Some(b'+') => (false, text.get(1..).unwrap_or_default()),
        _ => (false, text),
    };
    let rest = rest.trim_start_matches('0');
    let (numerator, rest) = split_digits(rest);
    let (denominator, suffix) = match rest.strip_prefix('.') {
        Some(rest) => split_digits(rest),
        None => ("", rest),
    };
    let exponent = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    if !exponent.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(QuantityError::FormatWrong);
    }
    let numerator = if numerator.is_empty() { "0" } else { numerator };
    Ok(Parts { negative, numerator, denominator, suffix })
}

fn trailing_zeros(digits: &str) -> i64 {
    (digits.len() - digits.trim_end_matches('0').len()) as i64
}

fn split_digits(text: &str) -> (&str, &str) {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

struct Suffix {
    /// A power of ten, or of two for binary suffixes.
    exponent: i64,
    format: Format,
}

impl Suffix {
    fn parse(suffix: &str) -> Option<Suffix> {
        let decimal = |exponent| Suffix { exponent, format: Format::DecimalSi };
        let binary = |exponent| Suffix { exponent, format: Format::BinarySi };
        Some(match suffix {
            "n" => decimal(-9),
            "u" => decimal(-6),
            "m" => decimal(-3),
            "" => decimal(0),
            "k" => decimal(3),
            "M" => decimal(6),
            "G" => decimal(9),
            "T" => decimal(12),
            "P" => decimal(15),
            "E" => decimal(18),
            "Ki" => binary(10),
            "Mi" => binary(20),
            "Gi" => binary(30),
            "Ti" => binary(40),
            "Pi" => binary(50),
            "Ei" => binary(60),
            _ => {
                let exponent: i64 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
                // The API keeps only the low 32 bits.
                Suffix { exponent: i64::from(exponent as i32), format: Format::DecimalExponent }
            }
        })
    }
}
