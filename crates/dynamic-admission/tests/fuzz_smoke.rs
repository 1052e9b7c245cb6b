//! Runs the fuzz target of webhooks' answers on a fixed sequence of mutations of valid answers.

#![allow(clippy::indexing_slicing, reason = "tests")]

#[path = "../../../fuzz/src/random.rs"]
mod random;
#[path = "../../../fuzz/src/review_answers.rs"]
mod review_answers;

use random::Random;

const ROUNDS: u32 = 4_000;

const ANSWERS: [&[u8]; 3] = [
    include_bytes!("../../../fuzz/seeds/review_answer/allowed.json"),
    include_bytes!("../../../fuzz/seeds/review_answer/denied.json"),
    include_bytes!("../../../fuzz/seeds/review_answer/beta.json"),
];

#[test]
fn answers_hold() {
    let mut random = Random::default();
    for whole in ANSWERS {
        review_answers::answers(whole);
        for _ in 0..ROUNDS {
            let mut data = whole.to_vec();
            for _ in 0..=random.below(3) {
                let at = random.below(data.len() + 1);
                match random.below(5) {
                    0 => data.truncate(at),
                    1 => data.insert(at, b"{}[]\":,-e0129anull"[random.below(18)]),
                    2 if at < data.len() => data[at] ^= 1 << random.below(8),
                    3 => drop(data.drain(at..(at + random.below(9)).min(data.len()))),
                    _ => {
                        let from = random.below(whole.len());
                        let length = random.below(whole.len() - from);
                        data.splice(at..at, whole[from..from + length].iter().copied());
                    }
                }
            }
            review_answers::answers(&data);
        }
    }
}
