//! Interrupts work of many steps.

use std::time::{Duration, Instant};

/// The time that work may hold its thread at once.
const TURN: Duration = Duration::from_millis(1);

/// Lets other tasks of a thread run between the steps of long work.
#[derive(Debug)]
pub struct Pace {
    /// The beginning of the present turn.
    began: Instant,
}

impl Pace {
    /// Work that begins now.
    pub fn new() -> Pace {
        Pace { began: Instant::now() }
    }

    /// Lets other tasks run if the work has held its thread for a millisecond or more. To be called between steps.
    pub async fn breathe(&mut self) {
        if self.began.elapsed() >= TURN {
            tokio::task::yield_now().await;
            self.began = Instant::now();
        }
    }
}

impl Default for Pace {
    fn default() -> Pace {
        Pace::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        pin::pin,
        task::{Context, Waker},
    };

    #[test]
    fn work_is_interrupted_once_in_a_turn() {
        let mut context = Context::from_waker(Waker::noop());
        let mut pace = Pace { began: Instant::now() + Duration::from_secs(3600) };
        assert!(pin!(pace.breathe()).poll(&mut context).is_ready());
        let long_ago = Instant::now().checked_sub(TURN).unwrap();
        let mut pace = Pace { began: long_ago };
        {
            let mut breath = pin!(pace.breathe());
            assert!(breath.as_mut().poll(&mut context).is_pending());
            assert!(breath.as_mut().poll(&mut context).is_ready());
        }
        assert!(pace.began > long_ago, "a new turn has begun");
    }
}
