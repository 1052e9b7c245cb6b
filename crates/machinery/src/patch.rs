//! Applies patches: JSON patch, JSON merge patch and strategic merge patch
//! (<https://kubernetes.io/docs/reference/using-api/api-concepts/#patch-and-apply>).
//!
//! A patch transforms a tree; decoding by the schema then checks that the result is an object of the right kind.
//! Recursion is bounded by the depth of the trees, which the decoders bound.

pub mod json_patch;
pub mod merge_patch;
pub mod patched_text;
mod scope;
pub mod strategic;

pub use scope::Scope;

use crate::{Status, StatusDetails, StatusReason};

/// The reasons why a patch does not apply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The patch itself is malformed: 400.
    #[error("{0}")]
    BadRequest(String),
    /// The patch does not fit the object: 422, without a reason in the message.
    #[error("{0}")]
    Unprocessable(String),
    /// A test of a JSON patch failed; as [`PatchError::Unprocessable`].
    #[error("{0}")]
    TestFailed(String),
    /// The patch has too many operations: 413.
    #[error("{0}")]
    TooLarge(String),
    /// Errors for which Kubernetes has no status of its own: 500 with the bare message.
    #[error("{0}")]
    Unknown(String),
}

impl From<PatchError> for Status {
    fn from(error: PatchError) -> Status {
        match error {
            PatchError::BadRequest(message) => Status::bad_request(message),
            PatchError::Unprocessable(_) | PatchError::TestFailed(_) => {
                let message = "the server rejected our request due to an error in our request";
                let mut status = Status::failure(422, StatusReason::Invalid, message);
                status.details = Some(StatusDetails::default());
                status
            }
            PatchError::TooLarge(message) => Status::request_entity_too_large(&message),
            PatchError::Unknown(message) => Status::unknown(message),
        }
    }
}
