//! Numbers, as Go's `strconv` reads them where the base follows from the text.

use crate::quote;

/// Parses an integer of 64 bits as `strconv.ParseInt` does with base 0: it may be hexadecimal, octal or binary, and
/// underscores may separate digits.
///
/// # Errors
/// When the text is no integer, or out of range, in Go's words.
pub fn parse_integer(text: &str) -> Result<i64, String> {
    let error = |why: &str| format!("strconv.ParseInt: parsing {}: {why}", quote(text));
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let plain = without_underscores(digits).ok_or_else(|| error("invalid syntax"))?;
    let lower = plain.to_ascii_lowercase();
    let prefixes = [("0x", 16), ("0b", 2), ("0o", 8), ("0", 8)];
    let based = prefixes.iter().find_map(|(prefix, radix)| Some((lower.strip_prefix(prefix)?, *radix)));
    let (digits, radix) = based.filter(|(digits, _)| !digits.is_empty()).unwrap_or((&lower, 10));
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return Err(error("invalid syntax"));
    }
    i64::from_str_radix(&format!("{sign}{digits}"), radix).map_err(|_| error("value out of range"))
}

/// Parses a number with a fraction as `strconv.ParseFloat` does; it may be hexadecimal, and underscores may separate
/// digits.
///
/// # Errors
/// When the text is no number, or out of the range of 64 bits, in Go's words.
pub fn parse_float(text: &str) -> Result<f64, String> {
    let error = |why: &str| format!("strconv.ParseFloat: parsing {}: {why}", quote(text));
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let plain = without_underscores(unsigned).ok_or_else(|| error("invalid syntax"))?;
    let hexadecimal = plain.strip_prefix("0x").or_else(|| plain.strip_prefix("0X"));
    let number = match hexadecimal {
        Some(digits) => hexadecimal_float(digits),
        None if plain.starts_with(['+', '-']) => None,
        None => plain.parse().ok(),
    };
    let number: f64 = number.ok_or_else(|| error("invalid syntax"))?;
    let is_infinity = plain.starts_with(['i', 'I']);
    if number.is_infinite() && !is_infinity {
        return Err(error("value out of range"));
    }
    Ok(if text.starts_with('-') { -number } else { number })
}

/// Parses a number of 32 bits as [`parse_float`] does.
///
/// # Errors
/// As [`parse_float`].
pub fn parse_float32(text: &str) -> Result<f32, String> {
    let number = parse_float(text)?;
    #[expect(clippy::cast_possible_truncation, reason = "it is rounded, and overflow is checked below")]
    let short = number as f32;
    match short.is_infinite() && number.is_finite() {
        true => Err(format!("strconv.ParseFloat: parsing {}: value out of range", quote(text))),
        false => Ok(short),
    }
}

/// The value of `digits.digits` and the exponent of 2 behind `p`.
fn hexadecimal_float(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once(['p', 'P'])?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.len() + fraction.len() == 0 || exponent.strip_prefix(['+', '-']).unwrap_or(exponent).is_empty() {
        return None;
    }
    let mut value = 0.0;
    for digit in whole.chars().chain(fraction.chars()) {
        value = value * 16.0 + f64::from(digit.to_digit(16)?);
    }
    let exponent: i32 = exponent.parse().ok()?;
    let shift = i32::try_from(fraction.len()).ok()?.checked_mul(4)?;
    Some(value * 2f64.powi(exponent.checked_sub(shift)?))
}

/// The text without its underscores; `None` if one of them is not between digits, or a prefix and a digit.
fn without_underscores(text: &str) -> Option<String> {
    if !text.contains('_') {
        return Some(text.to_owned());
    }
    let lower = text.to_ascii_lowercase();
    let prefix = ["0x", "0o", "0b"].into_iter().find(|prefix| lower.starts_with(prefix));
    let is_digit =
        |letter: char| letter.is_ascii_digit() || (prefix == Some("0x") && letter.is_ascii_hexdigit());
    // A prefix counts as a digit.
    let (mut before, rest) = match prefix {
        Some(prefix) => ('0', lower.strip_prefix(prefix).unwrap_or_default()),
        None => ('^', lower.as_str()),
    };
    for letter in rest.chars() {
        let class = match letter {
            '_' if before != '0' => return None,
            '_' => '_',
            _ if is_digit(letter) => '0',
            _ if before == '_' => return None,
            _ => '!',
        };
        before = class;
    }
    (before != '_').then(|| text.replace('_', ""))
}

/// Formats a double by the fewest digits that read as it, with an exponent: `1.5e-7`. Of two such texts that are equally
/// near it has the one with an even last digit, as `strconv.FormatFloat`; Rust's has the larger one.
pub fn shortest_scientific(value: f64) -> String {
    let text = format!("{value:e}");
    match fraction_digits(&text) {
        ..UNIQUE_DIGITS => text,
        digits => nearest_even(&text, &format!("{value:.digits$e}"), |text| text.parse() == Ok(value)),
    }
}

/// As [`shortest_scientific`], in single precision.
pub fn shortest_scientific32(value: f32) -> String {
    let text = format!("{value:e}");
    let digits = fraction_digits(&text);
    nearest_even(&text, &format!("{value:.digits$e}"), |text| text.parse() == Ok(value))
}

/// As [`shortest_scientific`], without an exponent.
pub fn shortest_decimal(value: f64) -> String {
    let text = format!("{value:e}");
    let plain = format!("{value}");
    let digits = fraction_digits(&text);
    if digits < UNIQUE_DIGITS {
        return plain;
    }
    let exponent = text.split_once('e').and_then(|(_, exponent)| exponent.parse::<i64>().ok()).unwrap_or(0);
    // No number whose last digit is in front of the decimal point is between two texts: it is even too often.
    match usize::try_from(i64::try_from(digits).unwrap_or(0) - exponent) {
        Ok(digits) => nearest_even(&plain, &format!("{value:.digits$}"), |text| text.parse() == Ok(value)),
        Err(_) => plain,
    }
}

/// No two decimals with this number of digits, or fewer, read as the same double.
const UNIQUE_DIGITS: usize = 15;

/// The number of digits behind the point of a mantissa.
fn fraction_digits(scientific: &str) -> usize {
    let mantissa = scientific.split('e').next().unwrap_or_default();
    mantissa.split_once('.').map_or(0, |(_, digits)| digits.len())
}

/// The text that is rounded to even, if it reads as the number.
fn nearest_even(shortest: &str, even: &str, reads: impl Fn(&str) -> bool) -> String {
    if shortest != even && reads(even) { even.to_owned() } else { shortest.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_those_of_go() {
        let check = |text: &str, expected: Result<i64, &str>| {
            let expected = expected.map_err(|why| format!("strconv.ParseInt: parsing {text:?}: {why}"));
            assert_eq!(parse_integer(text), expected);
        };
        check("-12", Ok(-12));
        check("+0x1F", Ok(31));
        check("017", Ok(15));
        check("0o17", Ok(15));
        check("0b11", Ok(3));
        check("0", Ok(0));
        check("1_0", Ok(10));
        check("0x_1f", Ok(31));
        check("0_7", Ok(7));
        check("-9223372036854775808", Ok(i64::MIN));
        check("9223372036854775808", Err("value out of range"));
        for text in ["", "x", "0x", "1 ", "--1", "+-1", "089", "1.5", "_1", "1_", "1__0", "0_x1"] {
            check(text, Err("invalid syntax"));
        }
    }

    #[test]
    fn fractions_are_those_of_go() {
        let check = |text: &str, expected: Result<f64, &str>| {
            let expected = expected.map_err(|why| format!("strconv.ParseFloat: parsing {text:?}: {why}"));
            assert_eq!(parse_float(text), expected);
        };
        check("0.5", Ok(0.5));
        check("-1e3", Ok(-1000.0));
        check("1_0", Ok(10.0));
        check("0x1p-2", Ok(0.25));
        check("0x1.8p1", Ok(3.0));
        check("Inf", Ok(f64::INFINITY));
        check("1e400", Err("value out of range"));
        for text in ["", "x", "1 ", "--1", "0x1", "0xp1", "0x1p", "1_.5"] {
            check(text, Err("invalid syntax"));
        }
        assert!(parse_float("NaN").unwrap().is_nan());
        assert!(parse_float32("1e40").unwrap_err().ends_with("value out of range"));
        assert_eq!(parse_float32("0.5"), Ok(0.5));
    }

    #[test]
    fn of_two_nearest_texts_the_even_one_is_shown() {
        for (value, decimal, scientific) in [
            (1_060_660_229_639_519.0 + 0.25, "1060660229639519.2", "1.0606602296395192e15"),
            (-1_060_660_229_639_519.0 - 0.75, "-1060660229639519.8", "-1.0606602296395198e15"),
            (0.1, "0.1", "1e-1"),
            (5e-324, "0.000", "5e-324"),
            (1e21, "1000000000000000000000", "1e21"),
            (9_007_199_254_740_993.0, "9007199254740992", "9.007199254740992e15"),
        ] {
            assert_eq!(shortest_scientific(value), scientific);
            assert!(shortest_decimal(value).starts_with(decimal), "{}", shortest_decimal(value));
        }
        assert_eq!(shortest_scientific32(0.1), "1e-1");
        assert_eq!(shortest_scientific32(16_777_216.0), "1.6777216e7");
    }
}
