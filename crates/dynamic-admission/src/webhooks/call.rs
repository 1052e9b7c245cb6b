//! Calls one webhook.

use super::{
    answer::{Answer, InvalidAnswer, answer},
    review::{Objects, review},
    webhook::Webhook,
};
use crate::matching::Targets;
use futures_util::future::{Either, select};
use pintle_admission::{AdmissionRequest, Endpoint};
use pintle_go_forms::quote;
use pintle_machinery::Status;
use std::{
    pin::pin,
    time::{Duration, Instant},
};
use tracing::Instrument;
use uuid::Uuid;

/// The reason why a request does not pass a webhook.
#[derive(Debug)]
pub(super) enum CallFailure {
    /// The webhook could not be called, or its answer cannot be used: the failure policy decides.
    Calling {
        /// The reason, without the name of the webhook.
        reason: String,
        /// The code for metrics.
        code: u16,
    },
    /// The webhook refuses the request.
    Rejected(Status),
    /// The request fails, whatever the failure policy is.
    Internal(Status),
}

impl CallFailure {
    pub(super) fn calling(reason: impl Into<String>, code: u16) -> CallFailure {
        CallFailure::Calling { reason: reason.into(), code }
    }

    /// The `Status` for the client.
    pub(super) fn into_status(self, webhook: &Webhook) -> Status {
        match self {
            CallFailure::Calling { reason, .. } => {
                let name = quote(&webhook.name);
                Status::internal_error(format!("failed calling webhook {name}: {reason}"))
            }
            CallFailure::Rejected(status) | CallFailure::Internal(status) => status,
        }
    }
}

/// Sends the request to a webhook and returns its answer, which is an approval.
///
/// # Errors
/// [`CallFailure`]. Warnings and annotations of a refusal are in the notes.
pub(super) async fn call(
    webhook: &Webhook,
    request: &AdmissionRequest<'_>,
    targets: &Targets<'_>,
    matched: &Endpoint,
    objects: &Objects,
    is_mutating: bool,
    notes: &mut Notes,
) -> Result<Answer, CallFailure> {
    if request.context.dry_run && !webhook.takes_dry_run {
        let why = format!("admission webhook {} does not support dry run", quote(&webhook.name));
        return Err(CallFailure::Internal(Status::bad_request(why)));
    }
    let Some(version) = webhook.review_version else {
        return Err(CallFailure::calling(
            "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)",
            400,
        ));
    };
    let uid = Uuid::new_v4().to_string();
    let question = review(version, &uid, request, targets.requested(), matched, objects);
    let client = webhook
        .client()
        .map_err(|why| CallFailure::calling(format!("could not get REST client: {why}"), 500))?;
    let span = tracing::info_span!(
        target: pintle_telemetry::TARGET,
        "webhook",
        otel.name = if is_mutating { "Call mutating webhook" } else { "Call validating webhook" },
        webhook = webhook.name.as_str(),
        UID = uid.as_str(),
    );
    let timeout = timeout(webhook, request.deadline);
    let post = pin!(client.post_telling(question, whole_seconds(timeout), timeout).instrument(span));
    // Nobody awaits the result of a request without its client, and it stores nothing.
    let response = match select(post, request.context.client.gone()).await {
        Either::Left((response, _)) => response.map_err(|error| error.to_string()),
        Either::Right(_) => Err("context canceled".to_owned()),
    };
    let response =
        response.map_err(|error| CallFailure::calling(format!("failed to call webhook: {error}"), 503))?;
    let mut answer = answer(&response, version, &uid, is_mutating).map_err(|error| match error {
        InvalidAnswer::Unreadable(why) => {
            let code = if (200..300).contains(&response.status) { 503 } else { response.status };
            CallFailure::calling(format!("failed to call webhook: {why}"), code)
        }
        InvalidAnswer::Refused(why) => {
            CallFailure::calling(format!("received invalid webhook response: {why}"), 503)
        }
    })?;
    notes.warnings.append(&mut answer.warnings);
    for (key, value) in answer.audit_annotations.drain(..) {
        notes.annotations.push((format!("{}/{key}", webhook.name), value));
    }
    match answer.denial(&webhook.name) {
        Some(denial) => Err(CallFailure::Rejected(denial)),
        None => Ok(answer),
    }
}

/// The time for a call: that of the webhook, but no more than the request has left.
fn timeout(webhook: &Webhook, deadline: Option<Instant>) -> Duration {
    let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    left.map_or(webhook.timeout, |left| left.min(webhook.timeout))
}

/// The time that a webhook is told, which is rounded up.
fn whole_seconds(timeout: Duration) -> Duration {
    Duration::from_secs(timeout.as_secs() + u64::from(timeout.subsec_nanos() > 0))
}

/// Fails a request whose time is over or whose client is gone: a webhook that failed then had no fault, whatever its failure
/// policy is.
///
/// # Errors
/// 504 at the deadline of the request and after it, or when nobody awaits the response.
pub(super) fn check_end(request: &AdmissionRequest<'_>) -> Result<(), Status> {
    match request.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
        true => Err(Status::deadline_exceeded()),
        false => request.context.check_client(),
    }
}

/// The warnings and audit annotations of a call.
#[derive(Debug, Default)]
pub(super) struct Notes {
    pub(super) warnings: Vec<String>,
    pub(super) annotations: Vec<(String, String)>,
}

impl Notes {
    /// Moves the notes to the request. Annotations whose key is not a name with a domain are dropped.
    pub(super) fn add_to(self, request: &mut AdmissionRequest<'_>) {
        request.warnings.extend(self.warnings);
        let is_key = |key: &str| {
            key.split('/').count() == 2 && pintle_machinery::validation::is_qualified_name(key).is_empty()
        };
        let valid = self.annotations.into_iter().filter(|(key, _)| is_key(key));
        request.audit_annotations.extend(valid.map(|(key, value)| (key.into(), value)));
    }
}

#[cfg(test)]
mod tests;
