//! Ranges of sizes and costs.

/// The range of a size or a cost. Arithmetic saturates at the largest number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// The minimum.
    pub min: u64,
    /// The maximum.
    pub max: u64,
}

impl Estimate {
    /// The range of all values.
    pub const UNKNOWN: Estimate = Estimate { min: 0, max: u64::MAX };

    /// A range of one value.
    pub const fn fixed(value: u64) -> Estimate {
        Estimate { min: value, max: value }
    }

    /// The sum of two ranges.
    #[must_use]
    pub fn plus(self, other: Estimate) -> Estimate {
        Estimate { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    /// The product of two ranges.
    #[must_use]
    pub fn times(self, other: Estimate) -> Estimate {
        Estimate { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    /// The range multiplied by a factor, rounded up.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Estimate {
        // The conversion from a float saturates.
        let scale = |value: u64| (value as f64 * factor).ceil() as u64;
        Estimate { min: scale(self.min), max: scale(self.max) }
    }

    /// The smallest range that contains both.
    #[must_use]
    pub fn union(self, other: Estimate) -> Estimate {
        Estimate { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_much_is_the_largest_number() {
        assert_eq!(Estimate::UNKNOWN.plus(Estimate::fixed(1)), Estimate { min: 1, max: u64::MAX });
        assert_eq!(Estimate::UNKNOWN.times(Estimate::fixed(2)), Estimate::UNKNOWN);
        assert_eq!(Estimate::UNKNOWN.scaled(1.0), Estimate::UNKNOWN);
        assert_eq!(Estimate::UNKNOWN.scaled(2.0), Estimate::UNKNOWN);
    }

    #[test]
    fn a_part_of_a_unit_is_a_unit() {
        assert_eq!(Estimate { min: 0, max: 11 }.scaled(0.1), Estimate { min: 0, max: 2 });
    }
}
