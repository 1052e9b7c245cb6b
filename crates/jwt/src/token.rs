//! Parses tokens.

use crate::Algorithm;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, de::IgnoredAny};

/// The largest length of a token, in bytes. Kubernetes' own tokens have about a thousand bytes.
pub const MAX_TOKEN_LENGTH: usize = 64 * 1024;

/// The error for text that is not a token in the compact form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the token is malformed")]
pub struct MalformedToken;

/// A parsed token, not verified.
#[derive(Debug)]
pub struct Token<'a> {
    /// The algorithm in its header; `None` for unknown ones, which no key accepts.
    pub algorithm: Option<Algorithm>,
    /// The key id in its header; "" for none.
    pub key_id: String,
    /// The claims, which should be JSON.
    pub payload: Vec<u8>,
    message: &'a str,
    signature: Vec<u8>,
}

/// The relevant part of a header. Duplicate members are refused: implementations differ in which one they use.
#[derive(Deserialize)]
struct Header {
    alg: Option<String>,
    kid: Option<String>,
    /// Extensions that a recipient must understand or refuse. None are supported here.
    crit: Option<IgnoredAny>,
}

impl<'a> Token<'a> {
    /// Parses a token.
    ///
    /// # Errors
    /// When it is too long, is not three parts of base64url, or its header is invalid.
    pub fn parse(text: &'a str) -> Result<Token<'a>, MalformedToken> {
        if text.len() > MAX_TOKEN_LENGTH {
            return Err(MalformedToken);
        }
        let (message, signature) = text.rsplit_once('.').ok_or(MalformedToken)?;
        let (header, payload) = message.split_once('.').ok_or(MalformedToken)?;
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| MalformedToken);
        let header = decode(header)?;
        // The decoder would accept a list as the header's members.
        if header.trim_ascii_start().first() != Some(&b'{') {
            return Err(MalformedToken);
        }
        let header: Header = serde_json::from_slice(&header).map_err(|_| MalformedToken)?;
        let algorithm = match header.crit {
            Some(_) => None,
            None => header.alg.as_deref().and_then(Algorithm::parse),
        };
        Ok(Token {
            algorithm,
            key_id: header.kid.unwrap_or_default(),
            payload: decode(payload)?,
            message,
            signature: decode(signature)?,
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
        URL_SAFE_NO_PAD.decode(payload).ok()
    }

    /// Whether the key signed the token.
    pub fn is_signed_by(&self, key: &crate::PublicKey) -> bool {
        self.algorithm
            .is_some_and(|algorithm| key.verify(algorithm, self.message.as_bytes(), &self.signature))
    }
}
