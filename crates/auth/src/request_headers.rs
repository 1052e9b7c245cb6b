//! The headers in which front proxies send users
//! (<https://kubernetes.io/docs/reference/access-authn-authz/authentication/#authenticating-proxy>).

use http::{HeaderMap, HeaderName};

/// The names of the headers in which a front proxy sends the user (`--requestheader-…-headers`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequestHeaders {
    /// The user name: the first header with a value.
    pub username: Vec<HeaderName>,
    /// The user's UID: the first header with a value.
    pub uid: Vec<HeaderName>,
    /// The groups: all values of all headers.
    pub group: Vec<HeaderName>,
    /// The prefixes of headers with extra fields; lower case.
    pub extra_prefix: Vec<String>,
}

impl RequestHeaders {
    /// Kubernetes' default names.
    pub fn standard() -> RequestHeaders {
        RequestHeaders {
            username: vec![HeaderName::from_static("x-remote-user")],
            uid: vec![HeaderName::from_static("x-remote-uid")],
            group: vec![HeaderName::from_static("x-remote-group")],
            extra_prefix: vec!["x-remote-extra-".to_owned()],
        }
    }

    /// Removes these headers from a request.
    pub fn remove_from(&self, headers: &mut HeaderMap) {
        for name in self.username.iter().chain(&self.uid).chain(&self.group) {
            headers.remove(name);
        }
        let is_extra =
            |name: &HeaderName| self.extra_prefix.iter().any(|prefix| name.as_str().starts_with(&**prefix));
        // Most requests have none, and need no list of names.
        if headers.keys().any(is_extra) {
            let extra: Vec<HeaderName> = headers.keys().filter(|name| is_extra(name)).cloned().collect();
            for name in extra {
                headers.remove(name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn headers(rows: &[(&'static str, &'static str)]) -> HeaderMap {
        let rows =
            rows.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        let mut headers = HeaderMap::new();
        for (name, value) in rows {
            headers.append(name, value);
        }
        headers
    }

    #[test]
    fn headers_are_taken_off() {
        let mut all = headers(&[
            ("x-remote-user", "a"),
            ("x-remote-user", "b"),
            ("x-remote-uid", "1"),
            ("x-remote-group", "c"),
            ("x-remote-extra-d", "e"),
            ("x-remote-extra-f", "g"),
            ("accept", "x"),
        ]);
        RequestHeaders::standard().remove_from(&mut all);
        assert_eq!(all, headers(&[("accept", "x")]));
    }
}
