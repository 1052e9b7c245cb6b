//! Exact decimal numbers.
//!
//! Exponents come from clients (`1e999999999` is a quantity). Every computed power of ten is therefore bounded by the
//! number of digits: numbers of different magnitude are compared by magnitude, and a sum whose terms are more than
//! [`MAX_DIGITS`] digits apart equals its larger term.

use num_bigint::{BigInt, Sign};
use std::cmp::Ordering;

const MAX_DIGITS: i64 = 4096;

/// `mantissa * 10^scale`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Amount {
    mantissa: Mantissa,
    scale: i64,
}

#[derive(Debug, Clone, PartialEq)]
enum Mantissa {
    Small(i64),
    Big(BigInt),
}

impl Default for Amount {
    fn default() -> Amount {
        Amount::small(0, 0)
    }
}

impl Amount {
    pub(super) fn small(value: i64, scale: i64) -> Amount {
        Amount { mantissa: Mantissa::Small(value), scale }
    }

    pub(super) fn big(value: BigInt, scale: i64) -> Amount {
        match i64::try_from(&value) {
            Ok(value) => Amount::small(value, scale),
            Err(_) => Amount { mantissa: Mantissa::Big(value), scale },
        }
    }

    fn wide(value: i128, scale: i64) -> Amount {
        match i64::try_from(value) {
            Ok(value) => Amount::small(value, scale),
            Err(_) => Amount { mantissa: Mantissa::Big(value.into()), scale },
        }
    }

    fn to_big(&self) -> BigInt {
        match &self.mantissa {
            Mantissa::Small(value) => (*value).into(),
            Mantissa::Big(value) => value.clone(),
        }
    }

    pub(super) fn sign(&self) -> i32 {
        match &self.mantissa {
            Mantissa::Small(value) => value.signum() as i32,
            Mantissa::Big(value) => match value.sign() {
                Sign::Minus => -1,
                Sign::NoSign => 0,
                Sign::Plus => 1,
            },
        }
    }

    pub(super) fn negated(&self) -> Amount {
        match &self.mantissa {
            Mantissa::Small(value) => Amount::wide(-i128::from(*value), self.scale),
            Mantissa::Big(value) => Amount::big(-value, self.scale),
        }
    }

    /// The number of digits before the decimal point; negative when zeros follow it.
    fn magnitude(&self) -> i64 {
        self.scale.saturating_add(self.digits())
    }

    fn digits(&self) -> i64 {
        match &self.mantissa {
            Mantissa::Small(0) => 0,
            Mantissa::Small(value) => i64::from(value.unsigned_abs().ilog10()) + 1,
            Mantissa::Big(value) => value.magnitude().to_string().len() as i64,
        }
    }

    pub(super) fn compare(&self, other: &Amount) -> Ordering {
        let (sign, other_sign) = (self.sign(), other.sign());
        if sign != other_sign || sign == 0 {
            return sign.cmp(&other_sign);
        }
        if let (Mantissa::Small(one), Mantissa::Small(two)) = (&self.mantissa, &other.mantissa)
            && self.scale == other.scale
        {
            return one.cmp(two);
        }
        let by_magnitude = self.magnitude().cmp(&other.magnitude());
        if by_magnitude != Ordering::Equal {
            return if sign > 0 { by_magnitude } else { by_magnitude.reverse() };
        }
        // The scales differ by at most the number of digits.
        let scale = self.scale.min(other.scale);
        self.mantissa_at(scale).cmp(&other.mantissa_at(scale))
    }

    /// The mantissa at a scale not above its own.
    fn mantissa_at(&self, scale: i64) -> BigInt {
        self.to_big() * power_of_ten(self.scale - scale)
    }

    pub(super) fn plus(&self, other: &Amount) -> Amount {
        if other.sign() == 0 {
            return self.clone();
        }
        if self.sign() == 0 {
            return other.clone();
        }
        let (high, low) = if self.scale >= other.scale { (self, other) } else { (other, self) };
        let difference = high.scale.saturating_sub(low.scale);
        if let (Mantissa::Small(high), Mantissa::Small(value)) = (&high.mantissa, &low.mantissa)
            && difference <= 18
        {
            let factor = 10_i128.pow(difference as u32);
            return Amount::wide(i128::from(*high) * factor + i128::from(*value), low.scale);
        }
        if high.magnitude().saturating_sub(low.magnitude()) > MAX_DIGITS
            || low.magnitude().saturating_sub(high.magnitude()) > MAX_DIGITS
        {
            return if high.magnitude() > low.magnitude() { high.clone() } else { low.clone() };
        }
        Amount::big(high.mantissa_at(low.scale) + low.to_big(), low.scale)
    }

    /// Rounds away from zero to a multiple of `10^scale`; returns whether the number was unchanged.
    pub(super) fn round_up(&mut self, scale: i64) -> bool {
        if self.scale >= scale {
            return true;
        }
        let (rounded, exact) = self.rounded(scale);
        *self = rounded;
        exact
    }

    fn rounded(&self, scale: i64) -> (Amount, bool) {
        let difference = scale.saturating_sub(self.scale);
        if difference <= 0 || self.sign() == 0 {
            return (self.clone(), true);
        }
        if difference > self.digits() {
            return (Amount::small(self.sign().into(), scale), false);
        }
        if let (Mantissa::Small(value), 0..=18) = (&self.mantissa, difference) {
            let divisor = 10_i64.pow(difference as u32);
            let remainder = value % divisor;
            return (Amount::small(value / divisor + remainder.signum(), scale), remainder == 0);
        }
        let (value, divisor) = (self.to_big(), power_of_ten(difference));
        let (quotient, remainder) = (&value / &divisor, &value % &divisor);
        let exact = remainder.sign() == Sign::NoSign;
        let away = if exact { BigInt::from(0) } else { BigInt::from(self.sign()) };
        (Amount::big(quotient + away, scale), exact)
    }

    /// Whether the mantissa is an `i64`.
    pub(super) fn is_small(&self) -> bool {
        matches!(self.mantissa, Mantissa::Small(_))
    }

    pub(super) fn is_whole(&self) -> bool {
        self.rounded(0).1
    }

    pub(super) fn as_i64(&self) -> Option<i64> {
        match self.mantissa {
            Mantissa::Small(value) => u32::try_from(self.scale)
                .ok()
                .and_then(|exponent| 10_i64.checked_pow(exponent))
                .and_then(|factor| value.checked_mul(factor)),
            Mantissa::Big(_) => None,
        }
    }

    /// The exponent of the mantissa.
    pub(super) fn scale(&self) -> i64 {
        self.scale
    }

    /// The number in units of `10^scale`, rounded away from zero, as Go computes it for an `i64` with an exponent. Outside
    /// the range of `i64` it is 0, or the lowest 64 bits after certain multiplications.
    pub(super) fn scaled_i64(&self, scale: i64) -> i64 {
        let (rounded, _) = self.rounded(scale);
        match &rounded.mantissa {
            Mantissa::Small(0 | i64::MIN) if rounded.scale != scale => 0,
            Mantissa::Small(value) => match u32::try_from(rounded.scale - scale) {
                Ok(exponent @ (1 | 2 | 3 | 6 | 9)) => value.wrapping_mul(10_i64.pow(exponent)),
                Ok(exponent) => {
                    let factor = 10_i64.checked_pow(exponent);
                    factor.and_then(|factor| value.checked_mul(factor)).unwrap_or(0)
                }
                Err(_) => 0,
            },
            Mantissa::Big(_) => 0,
        }
    }

    /// The number in units of `10^scale`, as Go computes it for a decimal whose last digit has the exponent `own`: it
    /// rounds up, negative numbers of few digits too far, and keeps the lowest 64 bits.
    pub(super) fn decimal_scaled_i64(&self, own: i64, scale: i64) -> i64 {
        const LOWEST_BITS: u64 = u64::MAX;
        let low = |value: &BigInt| {
            let bits = value & BigInt::from(LOWEST_BITS);
            u64::try_from(bits).unwrap_or_default().cast_signed()
        };
        // The lowest bits of a multiple of 10^64 are zero.
        let zeros = |exponent: i64| exponent.clamp(0, 64);
        let unscaled = low(&(self.to_big() * power_of_ten(zeros(self.scale - own))));
        let difference = scale - own;
        match u32::try_from(difference) {
            Ok(0) => unscaled,
            // Go computes the factor as a float; one beyond 64 bits becomes the lowest number.
            Err(_) => {
                let factor = go_pow10(-difference);
                unscaled.wrapping_mul(if factor < i64::MAX as f64 { factor as i64 } else { i64::MIN })
            }
            Ok(digits) => {
                let max = Amount::small(i64::MAX, own);
                if digits < 19 && self.compare(&max) == Ordering::Less {
                    let divisor = 10_i64.pow(digits);
                    return unscaled / divisor + i64::from(unscaled % divisor != 0);
                }
                if self.scale >= scale {
                    return low(&(self.to_big() * power_of_ten(zeros(self.scale - scale))));
                }
                let divisor = power_of_ten(scale - self.scale);
                let (quotient, remainder) = (self.to_big() / &divisor, self.to_big() % &divisor);
                low(&quotient).wrapping_add(match remainder.sign() {
                    Sign::NoSign | Sign::Minus => 0,
                    Sign::Plus => 1,
                })
            }
        }
    }

    /// The nearest float to the mantissa, times a power of ten. `decimal` is the exponent of a decimal's last digit.
    pub(super) fn as_f64(&self, decimal: Option<i64>) -> f64 {
        let (base, exponent) = match (&self.mantissa, decimal) {
            (Mantissa::Small(value), None) => (*value as f64, self.scale),
            (_, decimal) => {
                let exponent = decimal.unwrap_or(self.scale);
                let text = format!("{}e{}", self.to_big(), self.scale.saturating_sub(exponent));
                (text.parse().unwrap_or(f64::INFINITY), exponent)
            }
        };
        match exponent {
            0 => base,
            exponent => base * go_pow10(exponent),
        }
    }

    /// The digits and an exponent that is a multiple of three; the digits have no factor of a thousand.
    pub(super) fn canonical_base1000(&self) -> (String, i64) {
        let digits = match &self.mantissa {
            Mantissa::Small(value) => value.to_string(),
            Mantissa::Big(value) => value.to_string(),
        };
        let trimmed = digits.trim_end_matches('0');
        let mut exponent = self.scale + (digits.len() - trimmed.len()) as i64;
        let mut number = trimmed.to_owned();
        for _ in 0..exponent.rem_euclid(3) {
            number.push('0');
            exponent -= 1;
        }
        (number, exponent)
    }

    /// The digits and a power of 1024, for a whole number.
    pub(super) fn canonical_base1024(&self) -> (String, u32) {
        let (whole, _) = self.rounded(0);
        let mut power = 0;
        if let Mantissa::Small(mut value) = whole.mantissa
            && whole.scale == 0
        {
            while value != 0 && value % 1024 == 0 {
                value /= 1024;
                power += 1;
            }
            return (value.to_string(), power);
        }
        // Only sums reach this code, since single binary quantities are capped.
        let mut value = whole.to_big() * power_of_ten(whole.scale.clamp(0, MAX_DIGITS));
        while value.sign() != Sign::NoSign && (&value % 1024_i32).sign() == Sign::NoSign {
            value /= 1024_i32;
            power += 1;
        }
        (value.to_string(), power)
    }
}

/// Go's `math.Pow10`: the product or quotient of two powers that are exact to the last bit.
fn go_pow10(exponent: i64) -> f64 {
    let power = |exponent: i64| format!("1e{exponent}").parse::<f64>().unwrap_or(f64::INFINITY);
    match exponent {
        0..=308 => power(exponent / 32 * 32) * power(exponent % 32),
        -323..0 => power(exponent / 32 * 32) / power(-exponent % 32),
        309.. => f64::INFINITY,
        _ => 0.0,
    }
}

fn power_of_ten(exponent: i64) -> BigInt {
    BigInt::from(10).pow(u32::try_from(exponent).unwrap_or(0))
}
