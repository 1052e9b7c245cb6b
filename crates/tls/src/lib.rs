//! TLS where Go's, which other Kubernetes components use, differs from `rustls`: servers are verified by
//! [`pintle_x509`], own certificates may have any version, and more algorithms of signatures are known.
//!
//! Beside that it orders the cipher suites, and makes the reads below and above TLS large, and the writes above it. The
//! crate depends neither on HTTP nor on files.

mod cipher_suites;
mod credentials;
mod error_text;
mod handshake_signature;
mod joined_writes;
mod nist_curves;
mod pass_writes;
mod read_ahead;
mod server_verifier;
mod signature_algorithms;
mod whole_reads;

pub use cipher_suites::{crypto_provider, prefers_chacha20};
pub use credentials::certified_key;
pub use error_text::error_text;
pub use handshake_signature::{verify_tls12_signature, verify_tls13_signature};
pub use joined_writes::{JoinedConnection, JoinedWrites, Joint};
pub use read_ahead::ReadAhead;
pub use server_verifier::ServerVerifier;
pub use whole_reads::WholeReads;

#[cfg(test)]
mod tests;
