//! The URL that a request is forwarded to.

use http::{Uri, uri::Authority};
use pintle_go_forms::{normalize_path, normalize_query};

/// The URL that a request is forwarded to.
#[derive(Debug, Clone)]
pub struct Target {
    /// The absolute URL.
    pub uri: Uri,
    /// The part of the client's path that the backend does not see; "" when it sees the whole path.
    pub prefix: String,
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
}

#[cfg(test)]
mod tests {
    use super::*;

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
