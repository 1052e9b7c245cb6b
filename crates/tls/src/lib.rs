//! Verifies certificates where Go's TLS, which other Kubernetes components use, accepts more than `rustls-webpki`
//! does: servers whose certificate is itself a trust anchor, clients whose certificate is of X.509 version 1, and keys on
//! the curve P-521. `rustls-webpki` verifies everything else.
//!
//! Beside that it orders the cipher suites, and makes the reads below and above TLS large, and the writes above it. The crate depends neither on HTTP nor on files.

mod cipher_suites;
mod handshake_signature;
mod joined_writes;
mod p521;
mod pass_writes;
mod read_ahead;
mod server_verifier;
mod signature_algorithms;
mod trust_anchors;
mod version_one;
mod whole_reads;

pub use cipher_suites::{crypto_provider, prefers_chacha20};
pub use handshake_signature::{verify_tls12_signature, verify_tls13_signature};
pub use joined_writes::{JoinedConnection, JoinedWrites, Joint};
pub use read_ahead::ReadAhead;
pub use server_verifier::ServerVerifier;
pub use signature_algorithms::signature_algorithms;
pub use trust_anchors::TrustAnchors;
pub use version_one::is_issued_by;
pub use whole_reads::WholeReads;

#[cfg(test)]
mod tests;
