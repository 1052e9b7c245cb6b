//! Quantities in the form that Go prints them.
//!
//! A quantity is a decimal number with a suffix. What was written is kept when it is already in canonical form
//! (and so `+1` stays); otherwise the number is printed with as few digits as its suffixes allow. Values
//! finer than a billionth are rounded away from zero, binary ones are capped at the largest 64 bit integer.

use std::borrow::Cow;

const FORMAT_WRONG: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const NUMERIC: &str = "unable to parse numeric part of quantity";
const SUFFIX: &str = "unable to parse quantity's suffix";

/// The finest power of ten that is kept.
const NANO: i64 = -9;
/// Digits that any 64 bit integer can take.
const MAX_INT64_DIGITS: i64 = 18;
const MAX_BINARY: &[u8] = b"9223372036854775807";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    DecimalSi,
    BinarySi,
    DecimalExponent,
}

/// The canonical form of a quantity, or why it is none.
pub fn canonical_quantity(text: &str) -> Result<Cow<'_, str>, &'static str> {
    if text.is_empty() {
        return Err(FORMAT_WRONG);
    }
    if text == "0" {
        return Ok(Cow::Borrowed(text));
    }
    let parts = Parts::split(text)?;
    let (format, exponent) = suffix(parts.suffix)?;
    if parts.is_canonical(format, exponent) {
        return Ok(Cow::Borrowed(text));
    }
    // Without a digit (`Mi`, a lone point) Go's quick path reads zero, its thorough one refuses.
    let quick = match format {
        Format::BinarySi => exponent <= 40,
        Format::DecimalSi | Format::DecimalExponent => exponent >= NANO,
    };
    if parts.lacks_digits(text) && !quick {
        return Err(NUMERIC);
    }
    Ok(Cow::Owned(Amount::new(&parts, format, exponent).print(format)))
}

struct Parts<'a> {
    negative: bool,
    /// Without leading zeros, but at least one digit.
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

impl<'a> Parts<'a> {
    fn split(text: &'a str) -> Result<Self, &'static str> {
        let negative = text.starts_with('-');
        let rest = text.strip_prefix(['-', '+']).unwrap_or(text);
        let stripped = rest.trim_start_matches('0');
        if stripped.is_empty() {
            return Ok(Self { negative, whole: "0", fraction: "", suffix: "" });
        }
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let (whole, rest) = stripped.split_at_checked(digits(stripped)).unwrap_or((stripped, ""));
        let (fraction, rest) = match rest.strip_prefix('.') {
            Some(rest) => rest.split_at_checked(digits(rest)).unwrap_or((rest, "")),
            None => ("", rest),
        };
        let suffix = rest;
        let letters = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
        let exponent = letters.strip_prefix(['-', '+']).unwrap_or(letters);
        if !exponent.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(FORMAT_WRONG);
        }
        let whole = if whole.is_empty() { "0" } else { whole };
        Ok(Self { negative, whole, fraction, suffix })
    }

    /// Whether there is no digit before the suffix.
    fn lacks_digits(&self, text: &str) -> bool {
        let number = text.len() - self.suffix.len();
        !text.bytes().take(number).any(|byte| byte.is_ascii_digit())
    }

    /// Whether the text is kept as it was written.
    fn is_canonical(&self, format: Format, exponent: i64) -> bool {
        let digits = (self.whole.len() + self.fraction.len()) as i64;
        if format == Format::BinarySi {
            let precision = 15 - self.whole.len() as i64 - exponent * 3 / 10 - 1;
            return self.fraction.is_empty()
                && precision >= 0
                && exponent % 10 == 0
                && self.whole.parse::<i64>().is_ok_and(|value| value & 7 != 0);
        }
        let scale = exponent - self.fraction.len() as i64;
        let zeros = |text: &str| text.bytes().rev().take_while(|&digit| digit == b'0').count();
        let in_fraction = zeros(self.fraction);
        let trailing = in_fraction + if in_fraction == self.fraction.len() { zeros(self.whole) } else { 0 };
        let thousands = trailing >= 3;
        MAX_INT64_DIGITS >= digits
            && scale >= NANO
            && scale % 3 == 0
            && !thousands
            && !self.whole.starts_with('0')
    }
}

fn suffix(suffix: &str) -> Result<(Format, i64), &'static str> {
    Ok(match suffix {
        "n" => (Format::DecimalSi, -9),
        "u" => (Format::DecimalSi, -6),
        "m" => (Format::DecimalSi, -3),
        "" => (Format::DecimalSi, 0),
        "k" => (Format::DecimalSi, 3),
        "M" => (Format::DecimalSi, 6),
        "G" => (Format::DecimalSi, 9),
        "T" => (Format::DecimalSi, 12),
        "P" => (Format::DecimalSi, 15),
        "E" => (Format::DecimalSi, 18),
        "Ki" => (Format::BinarySi, 10),
        "Mi" => (Format::BinarySi, 20),
        "Gi" => (Format::BinarySi, 30),
        "Ti" => (Format::BinarySi, 40),
        "Pi" => (Format::BinarySi, 50),
        "Ei" => (Format::BinarySi, 60),
        _ => {
            let exponent = suffix.strip_prefix(['e', 'E']).ok_or(SUFFIX)?;
            let exponent: i64 = exponent.parse().map_err(|_| SUFFIX)?;
            // Go keeps 32 bits of the exponent.
            (Format::DecimalExponent, i64::from(exponent as i32))
        }
    })
}

/// A decimal number: digits (most significant first, no leading zeros) times ten to the power of `scale`.
struct Amount {
    negative: bool,
    digits: Vec<u8>,
    scale: i64,
}

impl Amount {
    fn new(parts: &Parts<'_>, format: Format, exponent: i64) -> Self {
        let digits = parts.whole.bytes().chain(parts.fraction.bytes()).map(|digit| digit - b'0').collect();
        let mut amount = Self { negative: parts.negative, digits, scale: -(parts.fraction.len() as i64) };
        match format {
            Format::BinarySi => {
                for _ in 0..exponent / 10 {
                    multiply(&mut amount.digits, 1024);
                }
            }
            Format::DecimalSi | Format::DecimalExponent => amount.scale += exponent,
        }
        amount.trim();
        amount.round_up(NANO);
        if format == Format::BinarySi && amount.exceeds_max_binary() {
            amount.digits = MAX_BINARY.iter().map(|digit| digit - b'0').collect();
            amount.scale = 0;
        }
        amount
    }

    /// Drops leading zeros, and trailing ones into the scale.
    fn trim(&mut self) {
        let leading = self.digits.iter().take_while(|&&digit| digit == 0).count();
        self.digits.drain(..leading);
        while self.digits.last() == Some(&0) {
            self.digits.pop();
            self.scale += 1;
        }
    }

    fn round_up(&mut self, scale: i64) {
        let drop = scale.saturating_sub(self.scale);
        if drop <= 0 || self.digits.is_empty() {
            return;
        }
        let keep = self.digits.len().saturating_sub(usize::try_from(drop).unwrap_or(usize::MAX));
        // Trimmed digits end in one that is not zero, so something is always lost.
        self.digits.truncate(keep);
        self.scale = scale;
        let mut carry = true;
        for digit in self.digits.iter_mut().rev() {
            carry = *digit == 9;
            *digit = if carry { 0 } else { *digit + 1 };
            if !carry {
                break;
            }
        }
        if carry {
            self.digits.insert(0, 1);
        }
        self.trim();
    }

    /// Digits before the decimal point.
    fn magnitude(&self) -> i64 {
        self.digits.len() as i64 + self.scale
    }

    fn exceeds_max_binary(&self) -> bool {
        let magnitude = self.magnitude();
        if self.digits.is_empty() || magnitude != MAX_BINARY.len() as i64 {
            return magnitude > MAX_BINARY.len() as i64;
        }
        self.digits.iter().map(|digit| digit + b'0').gt(MAX_BINARY.iter().copied())
    }

    fn print(self, format: Format) -> String {
        if self.digits.is_empty() {
            return "0".to_owned();
        }
        if format == Format::BinarySi
            && self.scale >= 0
            && self.magnitude() <= MAX_BINARY.len() as i64
            && let Some(value) = self.whole()
            && value >= 1024
        {
            return self.print_binary(value);
        }
        let excess = self.scale.rem_euclid(3);
        let exponent = self.scale - excess;
        let mut out = String::with_capacity(self.digits.len() + 5);
        if self.negative {
            out.push('-');
        }
        out.extend(self.digits.iter().map(|digit| char::from(digit + b'0')));
        out.extend((0..excess).map(|_| '0'));
        if format == Format::DecimalExponent {
            if exponent != 0 {
                out.push_str(&format!("e{exponent}"));
            }
            return out;
        }
        // Beyond the last suffix Go writes none at all.
        out.push_str(match exponent {
            -9 => "n",
            -6 => "u",
            -3 => "m",
            3 => "k",
            6 => "M",
            9 => "G",
            12 => "T",
            15 => "P",
            18 => "E",
            _ => "",
        });
        out
    }

    fn print_binary(&self, mut value: u64) -> String {
        let mut power = 0;
        while value.is_multiple_of(1024) && power < 6 {
            value /= 1024;
            power += 1;
        }
        let suffix = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].get(power).copied().unwrap_or_default();
        format!("{}{value}{suffix}", if self.negative { "-" } else { "" })
    }

    fn whole(&self) -> Option<u64> {
        let mut value = 0u64;
        for &digit in &self.digits {
            value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
        }
        for _ in 0..self.scale {
            value = value.checked_mul(10)?;
        }
        Some(value)
    }
}

fn multiply(digits: &mut Vec<u8>, factor: u32) {
    let mut carry = 0u32;
    for digit in digits.iter_mut().rev() {
        let value = u32::from(*digit) * factor + carry;
        *digit = (value % 10) as u8;
        carry = value / 10;
    }
    let mut head = Vec::new();
    while carry > 0 {
        head.push((carry % 10) as u8);
        carry /= 10;
    }
    head.reverse();
    digits.splice(0..0, head);
}

#[cfg(test)]
mod tests {
    use super::canonical_quantity;

    #[test]
    fn quantities_are_printed_as_go_does() {
        for (text, expected) in [
            ("0", "0"),
            ("00", "0"),
            ("0Mi", "0"),
            ("-0", "0"),
            ("+1", "+1"),
            ("1", "1"),
            ("007", "007"),
            ("0.5", "500m"),
            (".5", "500m"),
            ("1.", "1."),
            ("1.0", "1"),
            ("1.5", "1500m"),
            ("-1.5", "-1500m"),
            ("100m", "100m"),
            ("1000m", "1"),
            ("1000", "1k"),
            ("1500", "1500"),
            ("1000k", "1M"),
            ("0.1m", "100u"),
            ("0.1n", "1n"),
            ("1.1n", "2n"),
            ("0.00000000001", "1n"),
            ("-0.00000000001", "-1n"),
            ("9.9999999999", "10"),
            ("1Ki", "1Ki"),
            ("1024Ki", "1Mi"),
            ("8Ki", "8Ki"),
            ("1.5Gi", "1536Mi"),
            ("0.5Ki", "512"),
            ("0.1Ki", "102400m"),
            ("1e3", "1e3"),
            ("1E3", "1E3"),
            ("1000e3", "1e6"),
            ("12e1", "120"),
            ("1e-3", "1e-3"),
            ("1e-1", "100e-3"),
            ("16Ei", "9223372036854775807"),
            ("8Ei", "9223372036854775807"),
            ("7Ei", "7Ei"),
            ("100E", "100E"),
            ("123456789012345678901234567890", "123456789012345678901234567890"),
            ("64Gi", "64Gi"),
            ("2Ti", "2Ti"),
            (".", "0"),
            ("-", "0"),
            ("Mi", "0"),
            ("1048576", "1048576"),
        ] {
            assert_eq!(canonical_quantity(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn canonical_quantities_stay() {
        for text in ["1", "+1", "100m", "1Ki", "512Mi", "1e3", "1500m", "1n", "3G", "-5"] {
            assert_eq!(canonical_quantity(text).as_deref(), Ok(text));
        }
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        for text in ["", "a", "1a", "1Mix", "1.1.1", " 1", "1 ", "1e3x", "0x", "1-2x"] {
            assert!(
                canonical_quantity(text).is_err_and(|error| error.starts_with("quantities must")),
                "{text}"
            );
        }
        for text in ["--1", "1i", "1mm", "1e", "1-2", "1kk", "1e99999999999999999999"] {
            assert_eq!(canonical_quantity(text), Err(super::SUFFIX), "{text}");
        }
        assert_eq!(canonical_quantity("Ei"), Err(super::NUMERIC));
    }
}
