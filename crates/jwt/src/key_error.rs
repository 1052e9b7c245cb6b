//! The errors of keys.

/// The reason why a key cannot be read or used. The text contains nothing of the key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// No block is a private key.
    #[error("data does not contain a valid RSA or ECDSA private key")]
    NoPrivateKey,
    /// No block contains a public key.
    #[error("data does not contain any valid RSA or ECDSA public keys")]
    NoPublicKeys,
    /// The private key cannot sign.
    #[error("the private key cannot be used: {0}")]
    Unusable(String),
    /// Signing or generating a key failed.
    #[error("the source of randomness failed")]
    Random,
}
