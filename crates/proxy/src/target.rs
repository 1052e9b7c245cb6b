//! The URL that a request is forwarded to.

use http::{Uri, uri::Authority};
use pintle_go_forms::{escape_path, normalize_path, normalize_query};

/// The URL that a request is forwarded to.
#[derive(Debug, Clone)]
pub struct Target {
    /// The absolute URL.
    pub uri: Uri,
    /// The part of the client's path that the backend does not see; "" when it sees the whole path.
    pub prefix: String,
}

/// The address by which a backend is told that its clients reach it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The address that is dialled: in `Host`, in `X-Forwarded-Host` and `-Proto`, and in rewritten links.
    Backend,
    /// That of the client's request: its `Host`, `X-Forwarded-Host` and `-Proto` pass, and rewritten links have a path
    /// only.
    Client,
}

impl Target {
    /// The same path and query at another server, over TLS. The path is decoded and escaped anew, and the query is
    /// decoded, sorted by key and escaped anew, as Go's `url` package does both.
    ///
    /// # Errors
    /// When `authority` is not `host:port`.
    pub fn of(requested: &Uri, authority: &str) -> Result<Target, http::Error> {
        let authority: Authority = authority.parse()?;
        let path = normalize_path(requested.path());
        let query = requested.query().map(normalize_query).filter(|query| !query.is_empty());
        let path_and_query = match query {
            None => path.into_owned(),
            Some(query) => format!("{path}?{query}"),
        };
        let uri =
            Uri::builder().scheme("https").authority(authority).path_and_query(path_and_query).build()?;
        Ok(Target { uri, prefix: String::new() })
    }

    /// A URL of these parts. The path is not escaped, the query is.
    ///
    /// # Errors
    /// When `authority` is not a host with or without a port; the text is that of Go's client.
    pub fn new(
        scheme: &str,
        authority: &str,
        path: &str,
        query: &str,
        prefix: String,
    ) -> Result<Target, String> {
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
            _ => (authority, None),
        };
        if port.is_some_and(|port| port.parse::<u16>().is_err()) {
            return Err(format!("dial tcp: address {}: invalid port", port.unwrap_or_default()));
        }
        let no_such_host = || format!("dial tcp: lookup {host}: no such host");
        // The text before such a sign would not be part of the host.
        if host.is_empty() || authority.contains('@') {
            return Err(no_such_host());
        }
        let slash = if path.starts_with('/') { "" } else { "/" };
        let mark = if query.is_empty() { "" } else { "?" };
        let path_and_query = format!("{slash}{}{mark}{query}", escape_path(path.as_bytes()));
        let uri = Uri::builder().scheme(scheme).authority(authority).path_and_query(path_and_query).build();
        Ok(Target { uri: uri.map_err(|_| no_such_host())?, prefix })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_made_of_parts() {
        let check = |path: &str, query: &str, expected: &str| {
            let target = Target::new("http", "10.0.0.1:80", path, query, String::new()).unwrap();
            assert_eq!(target.uri.to_string(), format!("http://10.0.0.1:80{expected}"));
        };
        check("", "", "/");
        check("/a b?c#d%", "x=%2F&y", "/a%20b%3Fc%23d%25?x=%2F&y");
        check("/\u{e9}\n", "", "/%C3%A9%0A");
        let refused = |authority: &str| Target::new("http", authority, "", "", String::new()).unwrap_err();
        assert_eq!(refused("a b:80"), "dial tcp: lookup a b: no such host");
        assert_eq!(refused("a@127.0.0.1:80"), "dial tcp: lookup a@127.0.0.1: no such host");
        assert_eq!(refused(":80"), "dial tcp: lookup : no such host");
        assert_eq!(refused("a:http"), "dial tcp: address http: invalid port");
        assert_eq!(refused("a:65536"), "dial tcp: address 65536: invalid port");
        assert!(Target::new("http", "[fd00::1]", "", "", String::new()).is_ok());
        assert!(Target::new("http", "[fd00::1]:80", "", "", String::new()).is_ok());
    }

    #[test]
    fn paths_and_queries_are_escaped_anew() {
        let check = |requested: &str, expected: &str| {
            let target = Target::of(&requested.parse().unwrap(), "10.0.0.1:443").unwrap();
            assert_eq!(target.uri.to_string(), format!("https://10.0.0.1:443{expected}"));
        };
        check("/apis/a/v1", "/apis/a/v1");
        check("/apis/a/v1?", "/apis/a/v1");
        check("/apis/a%2Fb%20c?b=1&a=/", "/apis/a/b%20c?a=%2F&b=1");
        check("/apis//x/../y/?a;b", "/apis//x/../y/");
        check("https://other/apis", "/apis");
        assert!(Target::of(&"/".parse().unwrap(), "no host").is_err());
        let target = Target::of(&"/a".parse().unwrap(), "[fd00::1]:8443").unwrap();
        assert_eq!(target.uri.to_string(), "https://[fd00::1]:8443/a");
    }
}
