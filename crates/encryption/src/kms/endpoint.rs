//! The endpoint URL of a KMS plugin.

use percent_encoding::percent_decode_str;
use pintle_machinery::text::quote;
use std::{
    ffi::OsString,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
};

/// A Unix socket, written as `unix:///var/run/kms.sock`, or as `unix:///@name` for an abstract socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// The path of the socket; the name of an abstract socket follows a zero byte.
    path: PathBuf,
}

/// The reason why a text is not an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EndpointError {
    /// The text is not a URL.
    Url(String),
    /// The URL has another scheme, which may be empty.
    Scheme(String),
}

impl Endpoint {
    pub(crate) fn parse(text: &str) -> Result<Endpoint, EndpointError> {
        let invalid = |why: String| EndpointError::Url(format!("parse {}: {why}", quote(text)));
        if text.chars().any(|c| c.is_ascii_control()) {
            return Err(invalid("net/url: invalid control character in URL".to_owned()));
        }
        let (scheme, rest) = split_scheme(text).map_err(invalid)?;
        if scheme != "unix" {
            return Err(EndpointError::Scheme(scheme));
        }
        let rest = rest.split(['?', '#']).next().unwrap_or_default();
        let path = match rest.strip_prefix("//") {
            Some(rest) => rest.find('/').and_then(|slash| rest.get(slash..)).unwrap_or_default(),
            None => rest,
        };
        if let Some(escape) = wrong_escape(path) {
            return Err(invalid(format!("invalid URL escape {}", quote(escape))));
        }
        let mut bytes: Vec<u8> = percent_decode_str(path).collect();
        if bytes.starts_with(b"/@") {
            bytes.splice(..2, [0]);
        }
        Ok(Endpoint { path: PathBuf::from(OsString::from_vec(bytes)) })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// The scheme in lower case, empty for none, and the text after its colon.
fn split_scheme(text: &str) -> Result<(String, &str), String> {
    let Some((scheme, rest)) = text.split_once(':') else { return Ok((String::new(), text)) };
    if scheme.is_empty() {
        return Err("missing protocol scheme".to_owned());
    }
    if scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    {
        return Ok((scheme.to_ascii_lowercase(), rest));
    }
    match scheme.contains('/') {
        true => Ok((String::new(), text)),
        false => Err("first path segment in URL cannot contain colon".to_owned()),
    }
}

/// The first percent sign that is not followed by two hexadecimal digits, with up to two characters after it.
fn wrong_escape(path: &str) -> Option<&str> {
    path.match_indices('%').find_map(|(at, _)| {
        let escape = path.get(at..)?;
        let digits = escape.as_bytes().get(1..3).unwrap_or_default();
        if digits.len() == 2 && digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        let end = escape.char_indices().nth(3).map_or(escape.len(), |(end, _)| end);
        escape.get(..end)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_unix_sockets() {
        let path = |text| Endpoint::parse(text).map(|endpoint| endpoint.path);
        for (text, expected) in [
            ("unix:///run/kms.sock", "/run/kms.sock"),
            ("unix:/run/kms.sock", "/run/kms.sock"),
            ("UNIX://host/run/kms%20one.sock?x=y#z", "/run/kms one.sock"),
            ("unix:///@kms", "\0kms"),
            ("unix://", ""),
        ] {
            assert_eq!(path(text), Ok(PathBuf::from(expected)), "{text}");
        }
        let scheme = |scheme: &str| Err(EndpointError::Scheme(scheme.to_owned()));
        let url = |why: &str| Err(EndpointError::Url(why.to_owned()));
        for (text, expected) in [
            ("http://localhost", scheme("http")),
            ("/run/kms.sock", scheme("")),
            ("/run/a:b", scheme("")),
            (":foo", url("parse \":foo\": missing protocol scheme")),
            ("1:2", url("parse \"1:2\": first path segment in URL cannot contain colon")),
            ("unix:///%zz", url("parse \"unix:///%zz\": invalid URL escape \"%zz\"")),
            ("unix:///%é", url("parse \"unix:///%é\": invalid URL escape \"%é\"")),
            ("unix:///\n", url("parse \"unix:///\\n\": net/url: invalid control character in URL")),
        ] {
            assert_eq!(path(text), expected, "{text}");
        }
    }
}
