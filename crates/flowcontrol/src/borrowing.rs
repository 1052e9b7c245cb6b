//! Borrowing of seats between levels: each level's limit follows from the recent demand of all levels
//! (<https://kubernetes.io/docs/concepts/cluster-administration/flow-control/#borrowing>).

use crate::{
    allocation::{Class, allocate},
    integrator::Observed,
};
use std::time::Duration;

/// The interval at which limits are adjusted.
pub(crate) const ADJUSTMENT_PERIOD: Duration = Duration::from_secs(10);
/// The factor by which a high demand decays in each period without demand: to a half after five minutes.
const SMOOTHING: f64 = 0.977;

/// The seats that a level could have used.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Demand {
    pub(crate) average: f64,
    pub(crate) deviation: f64,
    pub(crate) high_watermark: u64,
    /// Follows increases at once, and decreases slowly.
    pub(crate) smoothed: f64,
}

impl Demand {
    pub(crate) fn update(&mut self, observed: &Observed) {
        self.high_watermark = observed.max.round() as u64;
        if observed.seconds <= 0.0 {
            return;
        }
        (self.average, self.deviation) = (observed.average, observed.deviation);
        let envelope = observed.average + observed.deviation;
        self.smoothed = envelope.max(SMOOTHING * self.smoothed + (1.0 - SMOOTHING) * envelope);
    }
}

/// The limits from a level's configuration, in seats.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    /// The seats by its shares.
    pub(crate) nominal: u64,
    /// The nominal seats without the lendable ones.
    pub(crate) lower: u64,
    /// The nominal seats with the borrowable ones.
    pub(crate) upper: u64,
}

impl Limits {
    pub(crate) fn of(
        nominal: u64,
        lendable_percent: u64,
        borrowing_percent: Option<u64>,
        server: u64,
    ) -> Limits {
        let percent = |percent: u64| (nominal as f64 * percent as f64 / 100.0).round() as u64;
        Limits {
            nominal,
            lower: nominal.saturating_sub(percent(lendable_percent)),
            upper: nominal.saturating_add(borrowing_percent.map_or(server, percent)),
        }
    }
}

/// A level that takes part in the adjustment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Participant {
    pub(crate) is_exempt: bool,
    pub(crate) limits: Limits,
    pub(crate) demand: Demand,
    /// Its present limit.
    pub(crate) current: u64,
}

/// A level's new limit, and its target.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Adjusted {
    pub(crate) limit: u64,
    pub(crate) target: f64,
}

impl Participant {
    /// The seats that the level gets in any case.
    fn least(&self) -> u64 {
        let wanted = match self.is_exempt {
            true => self.demand.high_watermark,
            false => self.limits.nominal.min(self.demand.high_watermark),
        };
        self.limits.lower.max(wanted)
    }

    fn class(&self) -> Class {
        let least = self.least() as f64;
        Class {
            target: least.max(self.demand.smoothed),
            lower_bound: least,
            upper_bound: self.limits.upper as f64,
        }
    }
}

/// Allocates the seats of all levels; the sum of their nominal seats is `total`. The second result is the fraction of
/// its target that a level between its bounds gets, or 0 when the seats do not suffice for that.
pub(crate) fn adjust(total: u64, levels: &[Participant]) -> (Vec<Adjusted>, f64) {
    let limited = || levels.iter().filter(|level| !level.is_exempt);
    let exempt: u64 = levels.iter().filter(|level| level.is_exempt).map(Participant::least).sum();
    let remaining = total.saturating_sub(exempt);
    let lower: u64 = limited().map(|level| level.limits.lower).sum();
    let least: u64 = limited().map(Participant::least).sum();
    let mut fraction = 0.0;
    let mut shares = None;
    if remaining > least {
        let classes: Vec<Class> = limited().map(Participant::class).collect();
        match allocate(total as f64, &classes) {
            Ok(allocation) => {
                fraction = allocation.fair_fraction;
                shares = Some(allocation.shares);
            }
            Err(error) => {
                tracing::error!(%error, "no new concurrency limits; the present ones stay");
                shares = Some(limited().map(|level| level.current as f64).collect());
            }
        }
    }
    let room = match least.saturating_sub(lower) {
        0 => 0.0,
        wanted => remaining.saturating_sub(lower) as f64 / wanted as f64,
    };
    let mut shares = shares.map(Vec::into_iter);
    let adjusted = levels.iter().map(|level| {
        let limit = match &mut shares {
            _ if level.is_exempt => level.least(),
            Some(shares) => shares.next().unwrap_or_default().round() as u64,
            None => {
                let wanted = level.least() - level.limits.lower;
                level.limits.lower + (wanted as f64 * room).round() as u64
            }
        };
        Adjusted { limit, target: level.class().target }
    });
    (adjusted.collect(), fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(nominal: u64, lendable: u64, borrowing: Option<u64>, high: u64, smoothed: f64) -> Participant {
        Participant {
            is_exempt: false,
            limits: Limits::of(nominal, lendable, borrowing, 600),
            demand: Demand { high_watermark: high, smoothed, ..Demand::default() },
            current: nominal,
        }
    }

    fn exempt(high: u64) -> Participant {
        Participant { is_exempt: true, limits: Limits::default(), ..level(0, 0, None, high, 0.0) }
    }

    #[test]
    fn limits_follow_from_the_configuration() {
        let check = |lendable, borrowing, lower, upper| {
            assert_eq!(Limits::of(50, lendable, borrowing, 600), Limits { nominal: 50, lower, upper });
        };
        check(0, Some(0), 50, 50);
        check(33, Some(50), 33, 75);
        check(100, None, 0, 650);
    }

    #[test]
    fn seats_go_where_they_are_wanted() {
        let check = |total, levels: &[Participant], expected: &[u64]| {
            let (adjusted, _) = adjust(total, levels);
            assert_eq!(adjusted.iter().map(|level| level.limit).collect::<Vec<_>>(), expected);
        };
        // Without demand: in proportion to the seats that are not lendable.
        check(200, &[level(100, 50, None, 0, 0.0), level(100, 50, None, 0, 0.0)], &[100, 100]);
        // One level borrows the other's lendable seats, within its borrowing limit.
        check(200, &[level(100, 50, None, 90, 400.0), level(100, 50, None, 0, 0.0)], &[150, 50]);
        check(200, &[level(100, 50, Some(20), 90, 400.0), level(100, 50, None, 0, 0.0)], &[120, 80]);
        // With demand on both, each has its nominal seats.
        check(200, &[level(100, 50, None, 500, 500.0), level(100, 50, None, 500, 500.0)], &[100, 100]);
        // Exempt levels take their seats first.
        check(
            200,
            &[exempt(60), level(100, 50, None, 100, 100.0), level(100, 50, None, 100, 100.0)],
            &[60, 70, 70],
        );
        check(
            200,
            &[exempt(500), level(100, 50, None, 100, 100.0), level(100, 50, None, 100, 100.0)],
            &[500, 50, 50],
        );
    }

    #[test]
    fn demand_is_forgotten_slowly() {
        let mut demand = Demand::default();
        let observed =
            |average: f64, seconds: f64| Observed { seconds, average, deviation: 0.0, max: average };
        demand.update(&observed(100.0, 10.0));
        assert_eq!((demand.smoothed, demand.high_watermark), (100.0, 100));
        for _ in 0..30 {
            demand.update(&observed(0.0, 10.0));
        }
        assert!((45.0..55.0).contains(&demand.smoothed), "{demand:?}");
        demand.update(&observed(7.0, 0.0));
        assert_eq!(demand.high_watermark, 7);
        assert!(demand.smoothed > 45.0);
    }
}
