//! Asking again, when what went wrong may be right a little later.

use crate::{CallError, Response, WebhookClient};
use bytes::Bytes;
use rand::Rng;
use std::time::Duration;

/// How often a webhook is asked, and how long is waited in between
/// (<https://pkg.go.dev/k8s.io/apimachinery/pkg/util/wait#Backoff>).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backoff {
    /// The first wait.
    pub initial: Duration,
    /// By what each wait is longer than the one before.
    pub factor: f64,
    /// By what part of itself a wait may be longer, at random.
    pub jitter: f64,
    /// How often is asked, at most.
    pub steps: u32,
}

impl Default for Backoff {
    /// What authentication and authorization webhooks are asked with.
    fn default() -> Backoff {
        Backoff { initial: Duration::from_millis(500), factor: 1.5, jitter: 0.2, steps: 5 }
    }
}

impl Backoff {
    /// The waits between the attempts: one less than there are attempts.
    pub fn waits(&self) -> impl Iterator<Item = Duration> + use<> {
        let Backoff { initial, factor, jitter, steps } = *self;
        (1..steps).scan(initial.as_secs_f64(), move |wait, _| {
            let seconds = *wait * (1.0 + jitter * rand::rng().random::<f64>());
            *wait *= factor;
            Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::from_secs(60)))
        })
    }
}

/// How one attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptResult {
    /// With an answer.
    Success,
    /// Its time was over.
    Timeout,
    /// With something else.
    Error,
}

impl AttemptResult {
    /// As metrics have it.
    pub fn as_str(self) -> &'static str {
        match self {
            AttemptResult::Success => "success",
            AttemptResult::Timeout => "timeout",
            AttemptResult::Error => "error",
        }
    }
}

impl WebhookClient {
    /// Asks until there is an answer, or an error that will stay, or no attempt is left; `attempted` is told how each attempt
    /// ended and how long it took. Each attempt has the whole `timeout`.
    ///
    /// # Errors
    /// What the last attempt ended with, in the words of Kubernetes' client.
    pub async fn post_until_answered(
        &self,
        question: &Bytes,
        timeout: Duration,
        backoff: &Backoff,
        mut attempted: impl FnMut(AttemptResult, Duration),
    ) -> Result<pintle_machinery::Value, String> {
        let mut waits = backoff.waits();
        loop {
            let start = tokio::time::Instant::now();
            let answer = self.post(question.clone(), timeout).await;
            let (result, is_transient, error) = match answer.map(|answer| (answer.object(), answer)) {
                Ok((Ok(object), _)) => {
                    attempted(AttemptResult::Success, start.elapsed());
                    return Ok(object);
                }
                Ok((Err(error), answer)) => (result_of(&answer), is_transient(&answer), error),
                Err(error) => (result_of_call(&error), error.is_transient(), error.to_string()),
            };
            attempted(result, start.elapsed());
            match waits.next().filter(|_| is_transient) {
                Some(wait) => tokio::time::sleep(wait).await,
                None => return Err(error),
            }
        }
    }
}

fn result_of_call(error: &CallError) -> AttemptResult {
    if error.is_timeout() { AttemptResult::Timeout } else { AttemptResult::Error }
}

fn result_of(answer: &Response) -> AttemptResult {
    if answer.status == 504 { AttemptResult::Timeout } else { AttemptResult::Error }
}

/// Errors that a server may get over, or says itself that it will.
fn is_transient(answer: &Response) -> bool {
    matches!(answer.status, 429 | 500 | 504) || answer.has_retry_after && answer.status >= 300
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_end() {
        let waits: Vec<_> = Backoff::default().waits().collect();
        assert_eq!(waits.len(), 4);
        let mut least = 0.5;
        for wait in waits {
            let seconds = wait.as_secs_f64();
            assert!((least..=least * 1.2).contains(&seconds), "{seconds} instead of {least}");
            least *= 1.5;
        }
        assert_eq!(Backoff { steps: 0, ..Backoff::default() }.waits().count(), 0);
    }
}
