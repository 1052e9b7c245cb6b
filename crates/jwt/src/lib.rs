//! JSON Web Tokens in the compact form ([RFC 7519](https://www.rfc-editor.org/rfc/rfc7519)): parses, signs and
//! verifies them, and has the keys for that.
//!
//! A [`Token`] is parsed text that is not verified yet; a [`PublicKey`] verifies its signature. The caller decides
//! which keys and algorithms are valid for which issuer. No key accepts an algorithm of another family: a public RSA
//! key is never used as the secret of an HMAC, and `none` is not supported.
//!
//! The crate does not interpret claims. The cryptography is `ring`'s, except that of P-521, which `ring` does not
//! have ([decision 9](../../../docs/decisions/0009-json-web-tokens.md)).

mod algorithm;
mod der;
mod generate;
mod go_values;
mod header;
mod json_web_key;
mod key_error;
mod key_file;
mod pem;
mod public_key;
mod signing_key;
mod token;

pub use algorithm::Algorithm;
pub use json_web_key::JsonWebKey;
pub use key_error::KeyError;
pub use key_file::public_keys_from_pem;
pub use public_key::PublicKey;
pub use signing_key::SigningKey;
pub use token::{MAX_TOKEN_LENGTH, MalformedToken, Token};
