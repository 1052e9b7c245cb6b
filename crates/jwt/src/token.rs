//! Parses tokens.

use crate::{Algorithm, header::Header};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use pintle_go_forms::base64::decode_raw_url;

/// The largest length of a token, in bytes. Kubernetes' own tokens have about a thousand bytes.
pub const MAX_TOKEN_LENGTH: usize = 64 * 1024;

/// The error for text that is not a token in the compact form, with the message of the library that kube-apiserver uses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MalformedToken(String);

/// A parsed token, not verified.
#[derive(Debug)]
pub struct Token {
    /// The algorithm in its header; `None` for unknown ones, which no key accepts.
    pub algorithm: Option<Algorithm>,
    /// The name of the algorithm in its header; "" for none.
    pub algorithm_name: String,
    /// The key id in its header; "" for none.
    pub key_id: String,
    /// The claims, which should be JSON.
    pub payload: Vec<u8>,
    /// The signed bytes; `None` when the header has an extension that must be understood, and is not.
    message: Option<Vec<u8>>,
    signature: Vec<u8>,
}

impl Token {
    /// Parses a token. White space between its characters is skipped, as are bits behind its last bytes: the signature
    /// is that of the canonical form.
    ///
    /// # Errors
    /// When it is too long, is not three parts of base64url, or its header is invalid.
    pub fn parse(text: &str) -> Result<Token, MalformedToken> {
        if text.len() > MAX_TOKEN_LENGTH {
            return Err(MalformedToken("the token is too long".to_owned()));
        }
        let spaceless: String;
        let text = match text.contains(char::is_whitespace) {
            true => {
                spaceless = text.split_whitespace().collect();
                &spaceless
            }
            false => text,
        };
        let mut parts = text.split('.');
        let (Some(header), Some(payload), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(MalformedToken(
                "go-jose/go-jose: compact JWS format must have three parts".to_owned(),
            ));
        };
        let header_bytes = decode_raw_url(header).map_err(MalformedToken)?;
        let payload = decode_raw_url(payload).map_err(MalformedToken)?;
        let signature = decode_raw_url(signature).map_err(MalformedToken)?;
        let header = Header::parse(&header_bytes).map_err(MalformedToken)?;
        let message = header.is_understood.then(|| {
            let mut message = URL_SAFE_NO_PAD.encode(&header_bytes).into_bytes();
            message.push(b'.');
            match header.signs_base64 {
                true => message.extend_from_slice(URL_SAFE_NO_PAD.encode(&payload).as_bytes()),
                false => message.extend_from_slice(&payload),
            }
            message
        });
        Ok(Token {
            algorithm: Algorithm::parse(&header.algorithm),
            algorithm_name: header.algorithm,
            key_id: header.key_id,
            payload,
            message,
            signature,
        })
    }

    /// The claims of text that may be a token, without any verification: enough to select an authenticator.
    pub fn peek(text: &str) -> Option<Vec<u8>> {
        if text.len() > MAX_TOKEN_LENGTH {
            return None;
        }
        let mut parts = text.split('.');
        let (Some(_), Some(payload), Some(_), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return None;
        };
        decode_raw_url(payload).ok()
    }

    /// Whether the key signed the token.
    pub fn is_signed_by(&self, key: &crate::PublicKey) -> bool {
        let (Some(algorithm), Some(message)) = (self.algorithm, &self.message) else { return false };
        key.verify(algorithm, message, &self.signature)
    }
}
