//! Continue tokens out of query strings.

use pintle_machinery::continue_token::ContinueToken;

const PREFIX: &str = "/registry/pods/";

/// A token never leaves its prefix, and what it says is what its encoding says.
pub(crate) fn continue_token(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(token) = ContinueToken::decode(text, PREFIX) else { return };
    assert!(token.start_key.starts_with(PREFIX) && !token.start_key.contains("/../"));
    assert_eq!(ContinueToken::decode(&token.encode(PREFIX), PREFIX), Ok(token));
}
