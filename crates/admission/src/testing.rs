//! Test support: requests, and the objects that plugins read beside them. Functions panic where a test has to fail.

#![expect(clippy::unwrap_used, reason = "a failure here is the failure of a test")]

#[cfg(test)]
mod calls;
mod objects;
mod request;

#[cfg(test)]
pub(crate) use calls::{Signers, admit, admit_as, admit_with, warnings_on_update};
pub use objects::Objects;
pub use request::{Request, endpoint};
