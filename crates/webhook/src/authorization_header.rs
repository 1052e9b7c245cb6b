//! The header `Authorization` of questions to a webhook.

use crate::Credentials;
use base64::Engine;
use http::HeaderValue;
use std::{
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// For how long a token is used before its file is read again.
const TOKEN_LIFETIME: Duration = Duration::from_secs(60);

/// Makes the header. A token file is read again each minute.
pub(crate) enum AuthorizationHeader {
    None,
    Fixed(HeaderValue),
    File { path: PathBuf, last: Mutex<Option<(Instant, HeaderValue)>> },
}

impl AuthorizationHeader {
    /// For these credentials; an error when they fit no header.
    pub(crate) fn new(credentials: &Credentials) -> Result<AuthorizationHeader, String> {
        Ok(match credentials {
            Credentials::None => AuthorizationHeader::None,
            Credentials::Token(token) => AuthorizationHeader::Fixed(bearer(token)?),
            Credentials::TokenFile(path) => AuthorizationHeader::File {
                path: path.clone(),
                last: Mutex::new(Some((Instant::now(), read(path)?))),
            },
            Credentials::Basic(name, password) => {
                let text = base64::engine::general_purpose::STANDARD.encode(format!("{name}:{password}"));
                AuthorizationHeader::Fixed(sensitive(&format!("Basic {text}"))?)
            }
        })
    }

    /// The header as it is now. A token whose file cannot be read any more is used on.
    pub(crate) fn value(&self) -> Option<HeaderValue> {
        match self {
            AuthorizationHeader::None => None,
            AuthorizationHeader::Fixed(value) => Some(value.clone()),
            AuthorizationHeader::File { path, last } => {
                let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
                let is_old = last.as_ref().is_none_or(|(at, _)| at.elapsed() >= TOKEN_LIFETIME);
                if is_old && let Ok(value) = read(path) {
                    *last = Some((Instant::now(), value));
                }
                last.as_ref().map(|(_, value)| value.clone())
            }
        }
    }
}

fn read(path: &Path) -> Result<HeaderValue, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("reading {path:?}: {error}"))?;
    match text.trim() {
        "" => Err(format!("reading {path:?}: there is no token in it")),
        token => bearer(token),
    }
}

fn bearer(token: &str) -> Result<HeaderValue, String> {
    sensitive(&format!("Bearer {token}"))
}

fn sensitive(text: &str) -> Result<HeaderValue, String> {
    // The library's error would not say which field it is about, and must not say what is in it.
    let value = HeaderValue::from_str(text);
    let mut value = value.map_err(|_| "the token or password cannot be sent in a header".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_say_who_asks() {
        let check = |credentials: Credentials, expected: Option<&str>| {
            let value = AuthorizationHeader::new(&credentials).unwrap().value();
            assert_eq!(value.as_ref().map(|value| value.to_str().unwrap()), expected);
        };
        check(Credentials::None, None);
        check(Credentials::Token("t".to_owned()), Some("Bearer t"));
        check(Credentials::Basic("a".to_owned(), "b".to_owned()), Some("Basic YTpi"));
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        std::fs::write(&path, "of the file\n").unwrap();
        check(Credentials::TokenFile(path), Some("Bearer of the file"));
        assert!(AuthorizationHeader::new(&Credentials::Token("a\nb".to_owned())).is_err());
    }
}
