//! Verifies certificates as Go's `crypto/x509` does, which other Kubernetes components use: by its rules, with its
//! algorithms and its errors. `x509-parser` reads them, `ring` and RustCrypto's curves verify signatures.
//!
//! The crate depends neither on TLS nor on files.

mod certificate;
mod chain;
mod curve;
mod host_name;
mod name_constraints;
mod names;
mod signature;
mod trust_anchors;
mod verify_error;

pub use chain::Usage;
pub use curve::Curve;
pub use signature::{EC_KEY, ED25519_KEY, RSA_KEY, SignatureError, Signed, curve_of};
pub use trust_anchors::TrustAnchors;
pub use verify_error::VerifyError;
