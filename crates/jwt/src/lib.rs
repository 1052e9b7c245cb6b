//! JSON Web Tokens in the compact form ([RFC 7519](https://www.rfc-editor.org/rfc/rfc7519)): taking them apart, signing
//! and verifying them, and the keys for that.
//!
//! A [`Token`] is text that was taken apart and of which nothing is believed yet; a [`PublicKey`] says whether a
//! signature is right. Which key and which algorithm may speak for whom is the caller's to decide, and no key takes an
//! algorithm of another family: a public RSA key is never the secret of an HMAC, and there is no `none`.
//!
//! Nothing here knows what claims mean. The cryptography is `ring`'s, except that of P-521, which `ring` does not have
//! ([decision 9](../../../docs/decisions/0009-json-web-tokens.md)).

mod algorithm;
mod der;
mod generate;
mod pem;
mod public_key;
mod signing_key;
mod token;

pub use algorithm::Algorithm;
pub use pem::public_keys_from_pem;
pub use public_key::PublicKey;
pub use signing_key::{KeyError, SigningKey};
pub use token::{MAX_TOKEN_LENGTH, MalformedToken, Token};
