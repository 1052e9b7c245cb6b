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

    /// The number in units of `10^scale`, rounded away from zero. Outside the range of `i64` a small mantissa yields 0,
    /// as in the reference, and a big one the nearest `i64`.
    pub(super) fn scaled_i64(&self, scale: i32) -> i64 {
        let scale = i64::from(scale);
        let (rounded, _) = self.rounded(scale);
        match &rounded.mantissa {
            Mantissa::Small(0) => 0,
            Mantissa::Small(value) => u32::try_from(rounded.scale - scale)
                .ok()
                .and_then(|exponent| 10_i64.checked_pow(exponent))
                .and_then(|factor| value.checked_mul(factor))
                .unwrap_or(0),
            Mantissa::Big(_) if self.sign() < 0 => i64::MIN,
            Mantissa::Big(_) => i64::MAX,
        }
    }

    pub(super) fn as_f64(&self) -> f64 {
        let scale = self.scale.clamp(-400, 400) as i32;
        match &self.mantissa {
            Mantissa::Small(value) => *value as f64 * 10_f64.powi(scale),
            // The reference rounds large numbers in nanos and scales them back; the last digit depends on it.
            Mantissa::Big(value) => {
                let nanos: f64 = format!("{value}e{}", scale + 9).parse().unwrap_or(f64::INFINITY);
                nanos * 1e-9
            }
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

fn power_of_ten(exponent: i64) -> BigInt {
    BigInt::from(10).pow(u32::try_from(exponent).unwrap_or(0))
}
