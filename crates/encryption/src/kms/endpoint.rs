//! The endpoint URL of a KMS plugin.

use pintle_go_forms::Url;
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
        let url = Url::parse(text).map_err(EndpointError::Url)?;
        if url.scheme() != "unix" {
            return Err(EndpointError::Scheme(url.scheme().to_owned()));
        }
        let mut bytes = url.path().to_vec();
        if bytes.starts_with(b"/@") {
            bytes.splice(..2, [0]);
        }
        Ok(Endpoint { path: PathBuf::from(OsString::from_vec(bytes)) })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
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
