//! The decisions of a policy on a request.

use pintle_machinery::StatusReason;
use std::time::Duration;

/// The decision of one validation.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Decision {
    pub(super) verdict: Verdict,
    pub(super) message: String,
    /// The duration of the evaluation.
    pub(super) elapsed: Duration,
}

/// The verdict of a validation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The expression is true.
    Holds,
    /// The expression is not true; the reason is that of the validation.
    Fails(StatusReason),
    /// The expression could not be evaluated, which denies the request.
    Error,
    /// The expression could not be evaluated, which the failure policy ignores.
    IgnoredError,
}

impl Decision {
    pub(super) fn holds(elapsed: Duration) -> Decision {
        Decision { verdict: Verdict::Holds, message: String::new(), elapsed }
    }

    pub(super) fn error(message: String, ignores_failures: bool, elapsed: Duration) -> Decision {
        let verdict = if ignores_failures { Verdict::IgnoredError } else { Verdict::Error };
        Decision { verdict, message, elapsed }
    }

    /// Whether the decision denies the request, or warns, as the binding says.
    pub(super) fn denies(&self) -> bool {
        matches!(self.verdict, Verdict::Fails(_) | Verdict::Error)
    }
}

/// The result of an audit annotation.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Annotation {
    /// The annotation is published.
    Publish {
        /// The key within the policy.
        key: Box<str>,
        /// The value.
        value: String,
    },
    /// The value could not be evaluated, which denies the request.
    Error {
        /// The message.
        message: String,
        /// The duration of the evaluation.
        elapsed: Duration,
    },
}

/// The results of a policy for one object of parameters.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Results {
    pub(super) decisions: Vec<Decision>,
    pub(super) annotations: Vec<Annotation>,
}
