//! Patches: JSON patch, JSON merge patch and strategic merge patch
//! (<https://kubernetes.io/docs/reference/using-api/api-concepts/#patch-and-apply>).
//!
//! A patch takes a tree and makes another; that the result is an object of the right kind is checked when it is decoded
//! by its schema. Nothing here recurses deeper than the trees do, which the decoders bound.

pub mod json_patch;
pub mod merge_patch;
mod scope;
pub mod strategic;

pub use scope::Scope;

use crate::{Status, StatusDetails, StatusReason};

/// Why a patch does not apply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The patch itself is malformed: 400.
    #[error("{0}")]
    BadRequest(String),
    /// The patch does not fit the object: 422, without a word of why.
    #[error("{0}")]
    Unprocessable(String),
    /// More operations than are allowed: 413.
    #[error("{0}")]
    TooLarge(String),
    /// Mistakes for which Kubernetes has no status of its own: 500 with the bare text.
    #[error("{0}")]
    Unknown(String),
}

impl From<PatchError> for Status {
    fn from(error: PatchError) -> Status {
        match error {
            PatchError::BadRequest(message) => Status::bad_request(message),
            PatchError::Unprocessable(_) => {
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
