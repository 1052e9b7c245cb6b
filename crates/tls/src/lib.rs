//! Verification of certificates where Go's TLS, which Kubernetes' other programs are made with, accepts more than
//! `rustls-webpki` does: servers whose certificate is itself a trust anchor, and clients whose certificate is of X.509
//! version 1. Everything else is left to `rustls-webpki`.
//!
//! This crate knows no HTTP and no files.

mod handshake_signature;
mod server_verifier;
mod trust_anchors;
mod version_one;

pub use handshake_signature::{verify_tls12_signature, verify_tls13_signature};
pub use server_verifier::ServerVerifier;
pub use trust_anchors::TrustAnchors;
pub use version_one::is_issued_by;

#[cfg(test)]
mod tests;
