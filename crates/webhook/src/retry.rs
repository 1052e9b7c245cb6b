//! Retries of calls after transient errors.

use crate::{CallError, Response, WebhookClient};
use bytes::Bytes;
use rand::Rng;
use std::time::Duration;

/// The number of attempts, and the back-off between them
/// (<https://pkg.go.dev/k8s.io/apimachinery/pkg/util/wait#Backoff>).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backoff {
    /// The first delay.
    pub initial: Duration,
    /// The factor by which the delay grows with each attempt.
    pub factor: f64,
    /// The largest random extension of a delay, as a fraction of it.
    pub jitter: f64,
    /// The largest number of attempts.
    pub steps: u32,
}

impl Default for Backoff {
    /// The back-off of authentication and authorization webhooks.
    fn default() -> Backoff {
        Backoff { initial: Duration::from_millis(500), factor: 1.5, jitter: 0.2, steps: 5 }
    }
}

impl Backoff {
    /// The delays between the attempts: one less than there are attempts.
    pub fn waits(&self) -> impl Iterator<Item = Duration> + use<> {
        let Backoff { initial, factor, jitter, steps } = *self;
        (1..steps).scan(initial.as_secs_f64(), move |wait, _| {
            let seconds = *wait * (1.0 + jitter * rand::rng().random::<f64>());
            *wait *= factor;
            Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::from_secs(60)))
        })
    }
}

/// The result of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptResult {
    /// A response.
    Success,
    /// A time-out.
    Timeout,
    /// Any other error.
    Error,
}

impl AttemptResult {
    /// The label value in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            AttemptResult::Success => "success",
            AttemptResult::Timeout => "timeout",
            AttemptResult::Error => "error",
        }
    }
}

impl WebhookClient {
    /// Posts the request until there is a response, a permanent error, or no attempt is left. Calls `attempted` with
    /// the result and the duration of each attempt. Each attempt has the whole `timeout`.
    ///
    /// # Errors
    /// The error of the last attempt, in the text of Kubernetes' client.
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

/// Whether an error response is transient, or has a `Retry-After` header.
fn is_transient(answer: &Response) -> bool {
    matches!(answer.status, 429 | 500 | 504) || answer.retry_after.is_some() && answer.status >= 300
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
