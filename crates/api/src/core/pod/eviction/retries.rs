//! The attempts of an eviction after conflicts.

use pintle_registry::Client;
use rand::Rng;
use std::time::Duration;

/// The maximum number of attempts.
const MAX_ATTEMPTS: usize = 20;
/// The pause before another attempt, and the largest part of it that is added at random.
const PAUSE: Duration = Duration::from_millis(500);
const JITTER: f64 = 0.1;

/// Counts the attempts, and spreads them over ten seconds: the other writer of the pod needs its time.
#[derive(Debug, Default)]
pub(super) struct Retries {
    made: usize,
}

impl Retries {
    /// Waits until another attempt is due after a failed one; returns whether there is one. There is none for a client
    /// that is gone.
    pub(super) async fn next(&mut self, client: &dyn Client) -> bool {
        self.made += 1;
        if self.made >= MAX_ATTEMPTS {
            return false;
        }
        let pause = PAUSE.mul_f64(1.0 + JITTER * rand::rng().random::<f64>());
        tokio::select! {
            biased;
            () = client.gone() => false,
            () = tokio::time::sleep(pause) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_registry::{PatientClient, testing::GoneClient};
    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn attempts_are_half_a_second_apart() {
        let (begun, mut retries) = (Instant::now(), Retries::default());
        let mut attempts = 1;
        while retries.next(&PatientClient).await {
            let (least, most) = (PAUSE * attempts, PAUSE.mul_f64(1.0 + JITTER) * attempts);
            // Tokio's clock counts whole milliseconds.
            let most = most + Duration::from_millis(1) * attempts;
            assert!((least..=most).contains(&begun.elapsed()), "{attempts}: {:?}", begun.elapsed());
            attempts += 1;
        }
        assert_eq!(attempts, 20);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_tried_again_for_a_client_that_is_gone() {
        let begun = Instant::now();
        assert!(!Retries::default().next(&GoneClient).await);
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }
}
