//! Shuffle sharding: selects the queues that a flow may use
//! (<https://kubernetes.io/docs/concepts/cluster-administration/flow-control/#queuing>).

/// The largest hand, in cards: with 16 of at least 16 queues there would be too many hands.
const MAX_HAND: usize = 15;
/// The number of bits of a hash that hands may be dealt by. With all 64 the last card would be dealt unevenly.
const MAX_HASH_BITS: f64 = 60.0;

/// The reason why hands cannot be dealt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DealerError {
    /// There are no queues, or hands are empty.
    #[error("there are no queues or hands are empty")]
    Nothing,
    /// A hand has more cards than there are queues.
    #[error("a hand has more cards than there are queues")]
    HandTooLarge,
    /// A hash has too few bits for the number of different hands.
    #[error("a hash has too few bits for so many different hands")]
    TooManyHands,
}

/// Deals hands of distinct queues. The hash alone determines the hand, and all hands are equally likely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dealer {
    queues: u64,
    hand_size: usize,
}

/// The queues of one hand.
#[derive(Debug, Clone, Copy)]
pub struct Hand {
    cards: [usize; MAX_HAND],
    size: usize,
}

impl Hand {
    /// The queues in the order in which they were dealt.
    pub fn cards(&self) -> &[usize] {
        self.cards.get(..self.size).unwrap_or_default()
    }
}

impl Dealer {
    /// A dealer of hands of `hand_size` out of `queues` queues.
    ///
    /// # Errors
    /// [`DealerError`] when such hands cannot be dealt.
    pub fn new(queues: usize, hand_size: usize) -> Result<Dealer, DealerError> {
        if queues == 0 || hand_size == 0 {
            return Err(DealerError::Nothing);
        }
        if hand_size > queues {
            return Err(DealerError::HandTooLarge);
        }
        let bits = ((queues as f64).log2() * hand_size as f64).ceil();
        if bits > MAX_HASH_BITS || hand_size > MAX_HAND {
            return Err(DealerError::TooManyHands);
        }
        Ok(Dealer { queues: queues as u64, hand_size })
    }

    /// The hand of a hash. The hash is read as a number whose digits have the bases `queues`, `queues - 1` and so on;
    /// each digit selects one of the cards that are left.
    pub fn deal(&self, mut hash: u64) -> Hand {
        let mut hand = Hand { cards: [0; MAX_HAND], size: self.hand_size };
        // The dealt cards, in ascending order.
        let mut gone = [0usize; MAX_HAND];
        for at in 0..self.hand_size {
            let left = self.queues - at as u64;
            let mut card = (hash % left) as usize;
            hash /= left;
            let mut place = 0;
            for other in gone.iter().take(at) {
                if card < *other {
                    break;
                }
                card += 1;
                place += 1;
            }
            if let Some(tail) = gone.get_mut(place..=at) {
                tail.rotate_right(1);
                if let Some(first) = tail.first_mut() {
                    *first = card;
                }
            }
            if let Some(slot) = hand.cards.get_mut(at) {
                *slot = card;
            }
        }
        hand
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_hand_has_different_queues() {
        for (queues, hand_size) in [(1, 1), (2, 2), (16, 4), (128, 6), (64, 8), (15, 15)] {
            let dealer = Dealer::new(queues, hand_size).unwrap();
            for seed in 0..500u64 {
                let hand = dealer.deal(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
                let cards: HashSet<usize> = hand.cards().iter().copied().collect();
                assert_eq!(cards.len(), hand_size);
                assert!(cards.iter().all(|card| *card < queues));
            }
        }
    }

    #[test]
    fn digits_choose_among_the_cards_left() {
        // 4 queues, 3 cards: hash = d0 + 4 * (d1 + 3 * d2).
        let dealer = Dealer::new(4, 3).unwrap();
        let check = |digits: [u64; 3], cards: &[usize]| {
            let [a, b, c] = digits;
            assert_eq!(dealer.deal(a + 4 * (b + 3 * c)).cards(), cards, "{digits:?}");
        };
        check([0, 0, 0], &[0, 1, 2]);
        check([3, 2, 1], &[3, 2, 1]);
        check([1, 1, 1], &[1, 2, 3]);
        check([2, 0, 1], &[2, 0, 3]);
        let all: HashSet<Vec<usize>> = (0..24).map(|hash| dealer.deal(hash).cards().to_vec()).collect();
        assert_eq!(all.len(), 24);
    }

    #[test]
    fn what_cannot_be_dealt_is_told() {
        let check = |queues, hand, expected| assert_eq!(Dealer::new(queues, hand).err(), expected);
        check(0, 1, Some(DealerError::Nothing));
        check(1, 0, Some(DealerError::Nothing));
        check(4, 8, Some(DealerError::HandTooLarge));
        check(64, 10, None);
        check(64, 11, Some(DealerError::TooManyHands));
        check(10_000_000, 10, Some(DealerError::TooManyHands));
    }
}
