//! Verifies certificates as Go's `crypto/x509`, which other Kubernetes components use: with its rules, its algorithms and
//! its errors. `rustls` and `x509-parser` do the rest.
//!
//! Beside that it orders the cipher suites, and makes the reads below and above TLS large, and the writes above it. The crate depends neither on HTTP nor on files.

mod certificate;
mod chain;
mod cipher_suites;
mod handshake_signature;
mod host_name;
mod issuer_signature;
mod joined_writes;
mod name_constraints;
mod nist_curves;
mod pass_writes;
mod read_ahead;
mod server_verifier;
mod signature_algorithms;
mod trust_anchors;
mod verify_error;
mod whole_reads;

pub use chain::Usage;
pub use cipher_suites::{crypto_provider, prefers_chacha20};
pub use handshake_signature::{verify_tls12_signature, verify_tls13_signature};
pub use joined_writes::{JoinedConnection, JoinedWrites, Joint};
pub use read_ahead::ReadAhead;
pub use server_verifier::ServerVerifier;
pub(crate) use signature_algorithms::signature_algorithms;
pub use trust_anchors::TrustAnchors;
pub use verify_error::VerifyError;
pub use whole_reads::WholeReads;

#[cfg(test)]
mod tests;
