//! Which traces are exported.

use crate::context::TraceContext;

/// Decides by the parent in another process, or else for a fraction of the traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampler {
    /// Of 2⁶³ traces without parent, so many are sampled.
    threshold: u64,
}

impl Sampler {
    /// Samples so many of a million traces without parent.
    pub fn per_million(rate: u32) -> Sampler {
        let threshold = (u128::from(rate.min(1_000_000)) << 63) / 1_000_000;
        Sampler { threshold: u64::try_from(threshold).unwrap_or(u64::MAX) }
    }

    /// Whether a trace is sampled. All processes decide alike, since the identity of the trace is random.
    pub(crate) fn samples(self, trace: u128, parent: Option<TraceContext>) -> bool {
        #[expect(clippy::cast_possible_truncation, reason = "the rule is about the lower half")]
        let random = trace as u64 >> 1;
        parent.map_or(random < self.threshold, |parent| parent.is_sampled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_of_the_traces_is_sampled() {
        let traces =
            (0..10_000_u128).map(|number| number.wrapping_mul(0x9E37_79B9_7F4A_7C15) & u128::from(u64::MAX));
        let of =
            |rate| traces.clone().filter(|trace| Sampler::per_million(rate).samples(*trace, None)).count();
        assert_eq!((of(0), of(1_000_000)), (0, 10_000));
        assert!((2_300..2_700).contains(&of(250_000)), "{}", of(250_000));
        let parent = |is_sampled| Some(TraceContext { trace: 1, span: 1, is_sampled });
        assert!(Sampler::per_million(0).samples(1, parent(true)));
        assert!(!Sampler::per_million(1_000_000).samples(1, parent(false)));
    }
}
