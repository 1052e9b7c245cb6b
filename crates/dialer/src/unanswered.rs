//! Requests without a response.

use crate::{Cause, UpstreamBody};
use http::Request;
use hyper::client::conn::TrySendError;

/// Why a request has no response.
pub(crate) enum Unanswered {
    /// The kept connection was closed before the request was sent.
    Unsent(Box<Request<UpstreamBody>>),
    Failed(Cause),
}

impl From<TrySendError<Request<UpstreamBody>>> for Unanswered {
    fn from(mut error: TrySendError<Request<UpstreamBody>>) -> Unanswered {
        match error.take_message() {
            Some(request) => Unanswered::Unsent(Box::new(request)),
            None => Unanswered::Failed(Cause::of(error.into_error())),
        }
    }
}
