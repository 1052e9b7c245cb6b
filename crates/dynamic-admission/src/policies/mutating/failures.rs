//! The failures of mutating policies, which deny a request unless the policy ignores them.

use pintle_admission::AdmissionRequest;
use pintle_go_forms::quote;
use pintle_machinery::{Status, StatusCause, StatusReason};

/// The failures of all policies on a request that are not ignored.
#[derive(Default)]
pub(super) struct Failures(Vec<(String, StatusReason)>);

/// The maximum number of failures that a refusal names.
const MAX_CAUSES: usize = 100;

impl Failures {
    /// Adds a failure of a policy, or of one of its bindings.
    pub(super) fn add(&mut self, policy: &str, binding: Option<&str>, error: &str, reason: StatusReason) {
        if self.0.len() >= MAX_CAUSES {
            return;
        }
        let message = match binding {
            Some(binding) => format!("policy '{policy}' with binding '{binding}' denied request: {error}"),
            None => format!("policy {} denied request: {error}", quote(policy)),
        };
        self.0.push((message, reason));
    }

    /// The refusal: a 403 with the message and the reason of the first failure, and all messages as causes.
    pub(super) fn refusal(self, request: &AdmissionRequest<'_>) -> Option<Status> {
        let (message, reason) = self.0.first()?;
        let mut status = request.forbidden(message);
        status.message.clone_from(message);
        status.reason = *reason;
        if let Some(details) = &mut status.details {
            let cause = |(message, _): (String, _)| StatusCause { message, ..StatusCause::default() };
            details.causes.extend(self.0.into_iter().map(cause));
        }
        Some(status)
    }
}
