//! Numbers that look random and follow from a seed.

/// SplitMix64 (<https://prng.di.unimi.it/splitmix64.c>).
pub(super) struct Dice(u64);

impl Dice {
    /// Dice whose throws depend on the seed and on a name, so that a change of one set leaves the others as they are.
    pub(super) fn new(seed: u64, name: &str) -> Dice {
        let mix = |state: u64, byte: u8| (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Dice(name.bytes().fold(seed ^ 0xcbf2_9ce4_8422_2325, mix))
    }

    /// A number below `end`, which is not 0.
    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        usize::try_from(mixed % end.max(1) as u64).unwrap_or_default()
    }

    /// One of the items.
    pub(super) fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throws_follow_from_the_seed_and_the_name() {
        let throws = |seed, name| {
            let mut dice = Dice::new(seed, name);
            (0..8).map(|_| dice.below(1000)).collect::<Vec<_>>()
        };
        assert_eq!(throws(1, "a"), throws(1, "a"));
        assert_ne!(throws(1, "a"), throws(2, "a"));
        assert_ne!(throws(1, "a"), throws(1, "b"));
        assert!(throws(7, "c").iter().all(|throw| *throw < 1000));
        assert_eq!(Dice::new(1, "a").pick::<u8>(&[]), None);
    }
}
