//! Tokens, taken apart.

use crate::Algorithm;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, de::IgnoredAny};

/// How long a token may be. Kubernetes' own are of about a thousand bytes.
pub const MAX_TOKEN_LENGTH: usize = 64 * 1024;

/// Text that is no token in the compact form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the token is malformed")]
pub struct MalformedToken;

/// A token of which nothing was verified.
#[derive(Debug)]
pub struct Token<'a> {
    /// How it says that it is signed; `None` is in no way that is known here, which no key accepts.
    pub algorithm: Option<Algorithm>,
    /// The key that it says it is signed with; "" for none.
    pub key_id: String,
    /// The claims, which are to be JSON.
    pub payload: Vec<u8>,
    message: &'a str,
    signature: Vec<u8>,
}

/// The part of a header that counts. A member that stands there twice is refused: which of them counted for others
/// nobody knows.
#[derive(Deserialize)]
struct Header {
    alg: Option<String>,
    kid: Option<String>,
    /// Extensions that whoever does not know them has to refuse. None are known here.
    crit: Option<IgnoredAny>,
}

impl<'a> Token<'a> {
    /// Takes text apart.
    ///
    /// # Errors
    /// When it is too long, is not three parts of base64url, or its header is not one.
    pub fn parse(text: &'a str) -> Result<Token<'a>, MalformedToken> {
        if text.len() > MAX_TOKEN_LENGTH {
            return Err(MalformedToken);
        }
        let (message, signature) = text.rsplit_once('.').ok_or(MalformedToken)?;
        let (header, payload) = message.split_once('.').ok_or(MalformedToken)?;
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| MalformedToken);
        let header = decode(header)?;
        // A list would be read member by member.
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

    /// The claims of text that may be a token, before anything else of it is looked at: enough to see whether it is
    /// meant for somebody.
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

    /// Whether the key signed it.
    pub fn is_signed_by(&self, key: &crate::PublicKey) -> bool {
        self.algorithm
            .is_some_and(|algorithm| key.verify(algorithm, self.message.as_bytes(), &self.signature))
    }
}
