//! Fuzzes the continue tokens of query strings.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use pintle_machinery::continue_token::ContinueToken;

const PREFIX: &str = "/registry/pods/";

/// A token never leaves its prefix, and survives encoding and decoding. The data is a token, or the JSON in
/// one.
pub(crate) fn continue_token(data: &[u8]) {
    for text in [std::str::from_utf8(data).unwrap_or_default(), &URL_SAFE_NO_PAD.encode(data)] {
        let Ok(token) = ContinueToken::decode(text, PREFIX) else { continue };
        assert!(token.start_key.starts_with(PREFIX) && !token.start_key.contains("/../"));
        assert_eq!(ContinueToken::decode(&token.encode(PREFIX), PREFIX), Ok(token));
    }
}
