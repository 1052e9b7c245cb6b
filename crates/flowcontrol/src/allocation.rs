//! Allocates seats fairly: to each class in proportion to its target, within its bounds.

/// A class that seats are allocated to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Class {
    /// The seats it wants.
    pub(crate) target: f64,
    /// The least it gets.
    pub(crate) lower_bound: f64,
    /// The most it gets.
    pub(crate) upper_bound: f64,
}

/// The result of an allocation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Allocation {
    /// The seats of the classes, in their order.
    pub(crate) shares: Vec<f64>,
    /// The fraction of its target that a class between its bounds gets.
    pub(crate) fair_fraction: f64,
}

/// The reason why no allocation exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum AllocationError {
    /// The bounds of a class contradict each other or its target.
    #[error("the bounds of a class contradict each other or its target")]
    Bounds,
    /// The lower bounds exceed the total.
    #[error("the lower bounds are more than there is")]
    TooLittle,
    /// The total exceeds the upper bounds.
    #[error("there is more than the upper bounds allow")]
    TooMuch,
}

/// The smallest target: smaller ones are raised to it, because zero has no fraction.
const MIN_TARGET: f64 = 0.001;
/// Sums of floats that differ by less than this are equal.
const EPSILON: f64 = 1e-7;

/// Allocates `total` completely: each class gets the same fraction of its target, except at a bound.
///
/// The sum of the allocations is a piecewise linear, increasing function of the fraction, with a corner at each
/// fraction where a class reaches a bound. So the solution is between the last corner with too small a sum and the
/// next one.
///
/// # Errors
/// When there is no solution.
pub(crate) fn allocate(total: f64, classes: &[Class]) -> Result<Allocation, AllocationError> {
    let mut sums = (0.0, 0.0);
    let mut bounds = Vec::with_capacity(classes.len() * 2);
    for class in classes {
        if class.lower_bound < 0.0
            || class.target < class.lower_bound
            || class.upper_bound < class.lower_bound
        {
            return Err(AllocationError::Bounds);
        }
        sums = (sums.0 + class.lower_bound, sums.1 + class.upper_bound);
        bounds.extend([class.lower_bound / wanted(class), class.upper_bound / wanted(class)]);
    }
    if sums.0 - total > EPSILON {
        return Err(AllocationError::TooLittle);
    }
    if total - sums.1 > EPSILON {
        return Err(AllocationError::TooMuch);
    }
    bounds.sort_by(f64::total_cmp);
    let shares = |fraction: f64| -> Vec<f64> {
        classes
            .iter()
            .map(|class| (fraction * wanted(class)).clamp(class.lower_bound, class.upper_bound))
            .collect()
    };
    let sum = |fraction: f64| shares(fraction).iter().sum::<f64>();
    let mut below = 0.0;
    let mut above = bounds.last().copied().unwrap_or_default();
    for bound in bounds {
        if sum(bound) < total - EPSILON {
            below = bound;
        } else {
            above = bound;
            break;
        }
    }
    let (low, high) = (sum(below), sum(above));
    let fair_fraction = match high - low > 0.0 {
        true => below + (above - below) * ((total - low) / (high - low)).clamp(0.0, 1.0),
        false => above,
    };
    Ok(Allocation { shares: shares(fair_fraction), fair_fraction })
}

fn wanted(class: &Class) -> f64 {
    class.target.max(MIN_TARGET)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn class((target, lower_bound, upper_bound): (f64, f64, f64)) -> Class {
        Class { target, lower_bound, upper_bound }
    }

    #[test]
    fn seats_are_shared_in_proportion_within_bounds() {
        let check = |total: f64, classes: &[(f64, f64, f64)], shares: &[f64], fraction: f64| {
            let classes: Vec<Class> = classes.iter().copied().map(class).collect();
            let allocation = allocate(total, &classes).unwrap();
            let close = |a: f64, b: f64| (a - b).abs() < 1e-6;
            assert!(
                allocation.shares.iter().zip(shares).all(|(a, b)| close(*a, *b))
                    && close(allocation.fair_fraction, fraction),
                "{allocation:?}"
            );
        };
        check(10.0, &[(10.0, 0.0, 100.0), (10.0, 0.0, 100.0)], &[5.0, 5.0], 0.5);
        check(30.0, &[(10.0, 0.0, 100.0), (20.0, 0.0, 100.0)], &[10.0, 20.0], 1.0);
        // A class at its upper bound leaves the rest to the other; a class at its lower bound takes from it.
        check(30.0, &[(10.0, 0.0, 5.0), (10.0, 0.0, 100.0)], &[5.0, 25.0], 2.5);
        check(12.0, &[(10.0, 10.0, 20.0), (10.0, 0.0, 100.0)], &[10.0, 2.0], 0.2);
        check(15.0, &[(10.0, 10.0, 20.0), (10.0, 5.0, 20.0)], &[10.0, 5.0], 0.5);
        // Without demand, everything is allocated all the same.
        check(8.0, &[(0.0, 0.0, 100.0), (0.0, 0.0, 2.0)], &[6.0, 2.0], 6000.0);
    }

    #[test]
    fn what_has_no_solution_is_told() {
        let check = |total: f64, one: (f64, f64, f64), expected| {
            assert_eq!(allocate(total, &[class(one)]), Err(expected));
        };
        check(1.0, (1.0, 2.0, 3.0), AllocationError::Bounds);
        check(1.0, (3.0, 2.0, 1.0), AllocationError::Bounds);
        check(1.0, (3.0, -1.0, 1.0), AllocationError::Bounds);
        check(1.0, (3.0, 2.0, 4.0), AllocationError::TooLittle);
        check(5.0, (3.0, 2.0, 4.0), AllocationError::TooMuch);
    }

    proptest! {
        #[test]
        fn all_is_given_out_and_bounds_hold(
            parts in prop::collection::vec((0u32..50, 0u32..50, 0u32..200), 1..12),
            place in 0f64..1.0,
        ) {
            let classes: Vec<Class> = parts
                .iter()
                .map(|(lower, more, room)| Class {
                    lower_bound: f64::from(*lower),
                    target: f64::from(lower + more),
                    upper_bound: f64::from(lower + room),
                })
                .collect();
            let low: f64 = classes.iter().map(|class| class.lower_bound).sum();
            let high: f64 = classes.iter().map(|class| class.upper_bound).sum();
            let total = (low + (high - low) * place).floor();
            let allocation = allocate(total, &classes).unwrap();
            let sum: f64 = allocation.shares.iter().sum();
            prop_assert!((sum - total).abs() < 1e-3, "{sum} of {total}");
            for (class, share) in classes.iter().zip(&allocation.shares) {
                prop_assert!(*share >= class.lower_bound && *share <= class.upper_bound);
                let fair = allocation.fair_fraction * wanted(class);
                prop_assert!(
                    (share - fair).abs() < 1e-6
                        || *share == class.lower_bound && class.lower_bound > fair
                        || *share == class.upper_bound && class.upper_bound < fair
                );
            }
        }
    }
}
