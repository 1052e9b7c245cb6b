//! The `Authorization` header of requests to a webhook.

use crate::Credentials;
use base64::Engine;
use http::HeaderValue;
use std::{
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// The time for which a token is used before its file is read again.
const TOKEN_LIFETIME: Duration = Duration::from_secs(60);

/// The source of the header. A token file is read again each minute.
pub(crate) enum AuthorizationHeader {
    None,
    Fixed(HeaderValue),
    /// The token that was last read, and the time.
    File {
        path: PathBuf,
        last: Mutex<(Instant, HeaderValue)>,
    },
}

impl AuthorizationHeader {
    /// The header for these credentials; an error when they are not valid in a header.
    pub(crate) fn new(credentials: &Credentials) -> Result<AuthorizationHeader, String> {
        Ok(match credentials {
            Credentials::None => AuthorizationHeader::None,
            Credentials::Token(token) => AuthorizationHeader::Fixed(bearer(token)?),
            Credentials::TokenFile(path) => AuthorizationHeader::File {
                path: path.clone(),
                last: Mutex::new((Instant::now(), read(path)?)),
            },
            Credentials::Basic(name, password) => {
                let text = base64::engine::general_purpose::STANDARD.encode(format!("{name}:{password}"));
                AuthorizationHeader::Fixed(sensitive(&format!("Basic {text}"))?)
            }
        })
    }

    /// The present header. If the token file cannot be read any more, the last token is used.
    pub(crate) async fn value(&self) -> Option<HeaderValue> {
        match self {
            AuthorizationHeader::None => None,
            AuthorizationHeader::Fixed(value) => Some(value.clone()),
            AuthorizationHeader::File { path, last } => {
                let (read_at, value) = last.lock().unwrap_or_else(PoisonError::into_inner).clone();
                if read_at.elapsed() < TOKEN_LIFETIME {
                    return Some(value);
                }
                let path = path.clone();
                let Ok(Ok(value)) = tokio::task::spawn_blocking(move || read(&path)).await else {
                    return Some(value);
                };
                *last.lock().unwrap_or_else(PoisonError::into_inner) = (Instant::now(), value.clone());
                Some(value)
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
    // The library's error would not name the field, and must not contain its value.
    let value = HeaderValue::from_str(text);
    let mut value = value.map_err(|_| "the token or password cannot be sent in a header".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn check(header: &AuthorizationHeader, expected: Option<&str>) {
        let value = header.value().await;
        assert_eq!(value.as_ref().map(|value| value.to_str().unwrap()), expected);
    }

    #[tokio::test(start_paused = true)]
    async fn headers_say_who_asks() {
        let header = |credentials| AuthorizationHeader::new(&credentials);
        check(&header(Credentials::None).unwrap(), None).await;
        check(&header(Credentials::Token("t".to_owned())).unwrap(), Some("Bearer t")).await;
        check(&header(Credentials::Basic("a".to_owned(), "b".to_owned())).unwrap(), Some("Basic YTpi")).await;
        assert!(header(Credentials::Token("a\nb".to_owned())).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_file_is_read_again_and_its_last_token_used_on_when_it_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        std::fs::write(&path, "first\n").unwrap();
        let header = AuthorizationHeader::new(&Credentials::TokenFile(path.clone())).unwrap();
        std::fs::write(&path, "second\n").unwrap();
        check(&header, Some("Bearer first")).await;
        tokio::time::advance(TOKEN_LIFETIME).await;
        check(&header, Some("Bearer second")).await;
        std::fs::remove_file(&path).unwrap();
        tokio::time::advance(TOKEN_LIFETIME).await;
        check(&header, Some("Bearer second")).await;
    }
}
