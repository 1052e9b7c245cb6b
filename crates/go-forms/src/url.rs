//! Parses and formats URLs as Go's `net/url` does (<https://pkg.go.dev/net/url#Parse>).

use crate::{parse_address, quote, quote_bytes};
use std::{borrow::Cow, fmt};

/// A URL, or a reference without a scheme.
///
/// Unescaped components are kept as bytes, because escapes can encode invalid UTF-8.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Url {
    scheme: String,
    opaque: String,
    user: Option<String>,
    host: Vec<u8>,
    path: Vec<u8>,
    /// The original path, if it differs from the default escaping.
    raw_path: Option<String>,
    omit_host: bool,
    force_query: bool,
    query: String,
    fragment: Vec<u8>,
    /// The original fragment, if it differs from the default escaping.
    raw_fragment: Option<String>,
}

/// Each part of a URL has its own set of characters that must be escaped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    User,
    Host,
    Zone,
    Path,
    Query,
    Fragment,
}

impl Url {
    /// Parses a URL or a reference, as `url.Parse`.
    ///
    /// # Errors
    /// Go's message.
    pub fn parse(text: &str) -> Result<Url, String> {
        let (url, fragment) = text.split_once('#').unwrap_or((text, ""));
        let mut parsed = parse(url, false).map_err(|error| wrap(url, &error))?;
        parsed.fragment = unescape(fragment, Part::Fragment).map_err(|error| wrap(text, &error))?;
        parsed.raw_fragment =
            (escape(&parsed.fragment, Part::Fragment) != fragment).then(|| fragment.to_owned());
        Ok(parsed)
    }

    /// Parses a request URI, as `url.ParseRequestURI`: absolute, or a path that begins with a slash, without fragment.
    ///
    /// # Errors
    /// Go's message.
    pub fn parse_request_uri(text: &str) -> Result<Url, String> {
        parse(text, true).map_err(|error| wrap(text, &error))
    }

    /// The scheme in lower case; empty for none.
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// The user and the password, escaped.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// Host and port.
    pub fn host(&self) -> String {
        String::from_utf8_lossy(&self.host).into_owned()
    }

    /// The host without its port and brackets.
    pub fn hostname(&self) -> String {
        let host = self.host();
        let name = split_port(&host).0;
        name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name).to_owned()
    }

    /// The port; empty for none.
    pub fn port(&self) -> String {
        split_port(&self.host()).1.to_owned()
    }

    /// The path, unescaped.
    pub fn path(&self) -> &[u8] {
        &self.path
    }

    /// The path as it was written, if it was escaped correctly.
    pub fn escaped_path(&self) -> String {
        match &self.raw_path {
            None if self.path == b"*" => "*".to_owned(),
            raw => escaped(&self.path, raw.as_deref(), Part::Path),
        }
    }

    /// The query as it was written.
    pub fn raw_query(&self) -> &str {
        &self.query
    }

    /// The parameters with their values, in order. Malformed ones are left out.
    pub fn query(&self) -> Vec<(String, Vec<String>)> {
        let mut parameters: Vec<(String, Vec<String>)> = Vec::new();
        for pair in self.query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (Ok(name), Ok(value)) = (unescape(name, Part::Query), unescape(value, Part::Query)) else {
                continue;
            };
            let name = String::from_utf8_lossy(&name).into_owned();
            let value = String::from_utf8_lossy(&value).into_owned();
            match parameters.iter_mut().find(|(known, _)| *known == name) {
                Some((_, values)) => values.push(value),
                None => parameters.push((name, vec![value])),
            }
        }
        parameters
    }

    /// Sets scheme and host.
    pub fn set_origin(&mut self, scheme: &str, host: &str) {
        self.scheme = scheme.to_owned();
        self.host = host.as_bytes().to_vec();
        self.omit_host = false;
    }

    /// Sets the path, which is not escaped.
    pub fn set_path(&mut self, path: Vec<u8>) {
        // An original form of another path does not count.
        self.raw_path = None;
        self.path = path;
    }

    /// The fragment, unescaped.
    pub fn fragment(&self) -> String {
        String::from_utf8_lossy(&self.fragment).into_owned()
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.scheme.is_empty() {
            write!(f, "{}:", self.scheme)?;
        }
        if !self.opaque.is_empty() {
            f.write_str(&self.opaque)?;
        } else {
            let named = !self.host.is_empty() || self.user.is_some();
            if named || (!self.scheme.is_empty() && !self.omit_host && !self.path.is_empty()) {
                f.write_str("//")?;
            }
            if let Some(user) = &self.user {
                write!(f, "{user}@")?;
            }
            f.write_str(&escape(&self.host, Part::Host))?;
            let path = self.escaped_path();
            if !path.is_empty() && !path.starts_with('/') && !self.host.is_empty() {
                f.write_str("/")?;
            }
            f.write_str(&path)?;
        }
        if self.force_query || !self.query.is_empty() {
            write!(f, "?{}", self.query)?;
        }
        if !self.fragment.is_empty() {
            write!(f, "#{}", escaped(&self.fragment, self.raw_fragment.as_deref(), Part::Fragment))?;
        }
        Ok(())
    }
}

/// The default form of an escaped path: decoded and escaped anew. A path with a malformed escape is unchanged.
pub fn normalize_path(path: &str) -> Cow<'_, str> {
    let is_normal = |byte: u8| !must_escape(byte, Part::Path);
    if path.bytes().all(is_normal) {
        return path.into();
    }
    match unescape(path, Part::Path) {
        Ok(bytes) => escape(&bytes, Part::Path).into(),
        Err(_) => path.into(),
    }
}

/// The normal form of a query, as `url.Values.Encode` gives it: decoded, sorted by key and escaped anew. Malformed
/// parameters, and those with a semicolon, are left out.
pub fn normalize_query(query: &str) -> String {
    let mut parameters: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if let (Ok(name), Ok(value)) = (unescape(name, Part::Query), unescape(value, Part::Query)) {
            parameters.push((name, value));
        }
    }
    // The sort is stable: the values of a key keep their order.
    parameters.sort_by(|(first, _), (second, _)| first.cmp(second));
    let mut out = String::with_capacity(query.len());
    for (name, value) in &parameters {
        if !out.is_empty() {
            out.push('&');
        }
        push_query_part(&mut out, name);
        out.push('=');
        push_query_part(&mut out, value);
    }
    out
}

/// A path that is not escaped, in the default escaped form.
pub fn escape_path(path: &[u8]) -> String {
    escape(path, Part::Path)
}

/// Parameters that are not escaped, as a query: sorted by key, as `url.Values.Encode` does it.
pub fn encode_query<'a>(parameters: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut parameters: Vec<(&str, &str)> = parameters.into_iter().collect();
    // The sort is stable: the values of a key keep their order.
    parameters.sort_by_key(|(name, _)| *name);
    let mut out = String::new();
    for (name, value) in parameters {
        if !out.is_empty() {
            out.push('&');
        }
        push_query_part(&mut out, name.as_bytes());
        out.push('=');
        push_query_part(&mut out, value.as_bytes());
    }
    out
}

fn push_query_part(out: &mut String, bytes: &[u8]) {
    for (position, word) in bytes.split(|byte| *byte == b' ').enumerate() {
        if position > 0 {
            out.push('+');
        }
        out.push_str(&escape(word, Part::Query));
    }
}

/// The shortest path that is the same, as `path.Clean` gives it: without `.`, `..`, doubled slashes and a slash at the end.
pub fn clean_path(path: &str) -> String {
    let is_rooted = path.starts_with('/');
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/').filter(|segment| !matches!(*segment, "" | ".")) {
        match segment {
            ".." if segments.last().is_some_and(|last| *last != "..") => drop(segments.pop()),
            ".." if is_rooted => {}
            segment => segments.push(segment),
        }
    }
    match (is_rooted, segments.is_empty()) {
        (true, _) => format!("/{}", segments.join("/")),
        (false, true) => ".".to_owned(),
        (false, false) => segments.join("/"),
    }
}

fn wrap(text: &str, error: &str) -> String {
    format!("parse {}: {error}", quote(text))
}

fn parse(text: &str, request: bool) -> Result<Url, String> {
    if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if text.is_empty() && request {
        return Err("empty url".to_owned());
    }
    let mut url = Url::default();
    if text == "*" {
        url.path = b"*".to_vec();
        return Ok(url);
    }
    let (scheme, rest) = split_scheme(text)?;
    url.scheme = scheme.to_lowercase();
    let (mut rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    url.force_query = query.is_empty() && text.ends_with('?');
    url.query = query.to_owned();
    if !rest.starts_with('/') {
        if !url.scheme.is_empty() {
            url.opaque = rest.to_owned();
            return Ok(url);
        }
        if request {
            return Err("invalid URI for request".to_owned());
        }
        if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    match rest.strip_prefix("//") {
        Some(after) if !url.scheme.is_empty() || (!request && !rest.starts_with("///")) => {
            let slash = after.find('/').unwrap_or(after.len());
            let (authority, path) = after.split_at_checked(slash).unwrap_or((after, ""));
            parse_authority(authority, &mut url)?;
            rest = path;
        }
        _ => url.omit_host = !url.scheme.is_empty() && rest.starts_with('/'),
    }
    url.path = unescape(rest, Part::Path)?;
    url.raw_path = (escape(&url.path, Part::Path) != rest).then(|| rest.to_owned());
    Ok(url)
}

fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    for (position, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if position > 0 => {}
            b':' if position == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok(text.split_once(':').unwrap_or(("", text))),
            _ => break,
        }
    }
    Ok(("", text))
}

fn parse_authority(authority: &str, url: &mut Url) -> Result<(), String> {
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    url.host = parse_host(&url.scheme, host)?;
    let Some(user) = user else { return Ok(()) };
    if !user.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte)) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    let (name, password) = match user.split_once(':') {
        Some((name, password)) => (name, Some(password)),
        None => (user, None),
    };
    let mut printed = escape(&unescape(name, Part::User)?, Part::User);
    if let Some(password) = password {
        printed.push(':');
        printed.push_str(&escape(&unescape(password, Part::User)?, Part::User));
    }
    url.user = Some(printed);
    Ok(())
}

fn parse_host(scheme: &str, host: &str) -> Result<Vec<u8>, String> {
    let check_port = |port: &str| match is_optional_port(port) {
        true => Ok(()),
        false => Err(format!("invalid port {} after host", quote(port))),
    };
    match host.rfind('[') {
        Some(0) => {
            let Some(end) = host.rfind(']') else { return Err("missing ']' in host".to_owned()) };
            let address = host.get(1..end).unwrap_or_default();
            let port = host.get(end + 1..).unwrap_or_default();
            check_port(port)?;
            let zone = address.find("%25").unwrap_or(address.len());
            let (address, zone) = address.split_at_checked(zone).unwrap_or((address, ""));
            let mut name = unescape(address, Part::Host)?;
            name.extend(unescape(zone, Part::Zone)?);
            let address = parse_address(&String::from_utf8_lossy(&name))
                .map_err(|error| format!("invalid host: {error}"))?;
            if address.ip.is_ipv4() {
                return Err("invalid IP-literal".to_owned());
            }
            return Ok([b"[", name.as_slice(), b"]", port.as_bytes()].concat());
        }
        Some(_) => return Err("invalid IP-literal".to_owned()),
        None => {}
    }
    // Databases have lists of hosts with ports in their URLs; only HTTP's are strict.
    let colon = match scheme {
        "http" | "https" => host.find(':'),
        _ => host.rfind(':'),
    };
    if let Some(colon) = colon {
        check_port(host.get(colon..).unwrap_or_default())?;
    }
    unescape(host, Part::Host)
}

fn is_optional_port(port: &str) -> bool {
    match port.strip_prefix(':') {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_digit()),
        None => port.is_empty(),
    }
}

fn split_port(host: &str) -> (&str, &str) {
    match host.rfind(':').and_then(|colon| host.split_at_checked(colon)) {
        Some((name, port)) if is_optional_port(port) => (name, port.trim_start_matches(':')),
        _ => (host, ""),
    }
}

/// The original text of a part if all its escapes are valid, otherwise the default escaping of its bytes.
fn escaped(bytes: &[u8], raw: Option<&str>, part: Part) -> String {
    let is_valid = |byte: u8| b"!$&'()*+,;=:@[]%".contains(&byte) || !must_escape(byte, part);
    match raw {
        Some(raw) if raw.bytes().all(is_valid) => raw.to_owned(),
        _ => escape(bytes, part),
    }
}

fn must_escape(byte: u8, part: Part) -> bool {
    if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
        return false;
    }
    match part {
        Part::Host | Part::Zone => !b"!$&'()*+,;=:[]<>\"".contains(&byte),
        Part::Path => !b"$&+,/:;=@".contains(&byte),
        Part::User => !b"$&+,;=".contains(&byte),
        Part::Query => true,
        Part::Fragment => !b"$&+,/:;=?@!()*".contains(&byte),
    }
}

fn escape(bytes: &[u8], part: Part) -> String {
    let mut out = String::with_capacity(bytes.len());
    for byte in bytes {
        match must_escape(*byte, part) {
            true => {
                out.push('%');
                let digits = [byte >> 4, byte & 0xf].map(|digit| char::from_digit(digit.into(), 16));
                out.extend(digits.into_iter().flatten().map(|digit| digit.to_ascii_uppercase()));
            }
            false => out.push(char::from(*byte)),
        }
    }
    out
}

fn unescape(text: &str, part: Part) -> Result<Vec<u8>, String> {
    let in_host = matches!(part, Part::Host | Part::Zone);
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        match first {
            b'%' => {
                let invalid =
                    |escape: &[u8]| format!("invalid URL escape {}", quote_bytes(&[b"%", escape].concat()));
                let [high, low, after @ ..] = tail else { return Err(invalid(tail)) };
                let digit =
                    |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
                let (Some(high_digit), Some(low_digit)) = (digit(high), digit(low)) else {
                    return Err(invalid(&[*high, *low]));
                };
                let byte = high_digit << 4 | low_digit;
                let percent = (*high, *low) == (b'2', b'5');
                // Hosts allow escapes only beyond ASCII, zones only where needed.
                let forbidden = match part {
                    Part::Host => high_digit < 8 && !percent,
                    Part::Zone => !percent && byte != b' ' && must_escape(byte, Part::Host),
                    _ => false,
                };
                if forbidden {
                    return Err(invalid(&[*high, *low]));
                }
                out.push(byte);
                rest = after;
            }
            b'+' if part == Part::Query => out.push(b' '),
            byte if in_host && byte.is_ascii() && must_escape(*byte, part) => {
                let c = quote(&char::from(*byte).to_string());
                return Err(format!("invalid character {c} in host name"));
            }
            byte => out.push(*byte),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_queries_have_a_normal_form() {
        let path = |text: &str, expected: &str| assert_eq!(normalize_path(text), expected, "{text}");
        path("/a/b-c_d.e~f$&+,:;=@", "/a/b-c_d.e~f$&+,:;=@");
        path("/a%2Fb%20c", "/a/b%20c");
        path("/a!'()*[]", "/a%21%27%28%29%2A%5B%5D");
        path("/a//b/../c/", "/a//b/../c/");
        path("/%c3%a9%3f", "/%C3%A9%3F");
        path("/%zz", "/%zz");
        let query = |text: &str, expected: &str| assert_eq!(normalize_query(text), expected, "{text}");
        query("", "");
        query("a&b=/", "a=&b=%2F");
        query(
            "z=1&a=2&m=%C3%A9&a=1&e=&f&g=%26%3D&p=a+b&s=a%20b;c",
            "a=2&a=1&e=&f=&g=%26%3D&m=%C3%A9&p=a+b&z=1",
        );
        query("x=%2Fa%20b&x=+&y&bad=%z", "x=%2Fa+b&x=+&y=");
        query("b=%ff", "b=%FF");
    }

    #[test]
    fn paths_are_cleaned() {
        for (path, expected) in [
            ("", "."),
            ("/", "/"),
            ("//a/./b//c/../d/", "/a/b/d"),
            ("/../a", "/a"),
            ("../../a", "../../a"),
            ("a/..", "."),
        ] {
            assert_eq!(clean_path(path), expected, "{path}");
        }
    }

    #[test]
    fn parts_are_told_apart() {
        // url, scheme, host, hostname, port, escaped path
        let rows = [
            (
                "https://user:pass@example.com:80/path?query=val#fragment",
                "https",
                "example.com:80",
                "example.com",
                "80",
                "/path",
            ),
            ("/absolute-path", "", "", "", "", "/absolute-path"),
            ("https://[::1]:80/", "https", "[::1]:80", "::1", "80", "/"),
            ("https://[::1]/", "https", "[::1]", "::1", "", "/"),
            (
                "https://example.com/path with spaces/",
                "https",
                "example.com",
                "example.com",
                "",
                "/path%20with%20spaces/",
            ),
            ("https://example.com", "https", "example.com", "example.com", "", ""),
            ("HTTP://Example.com/a%2Fb", "http", "Example.com", "Example.com", "", "/a%2Fb"),
            ("mailto:someone", "mailto", "", "", "", ""),
        ];
        for (text, scheme, host, hostname, port, path) in rows {
            let url = Url::parse(text).unwrap();
            let parts = (url.scheme(), url.host(), url.hostname(), url.port(), url.escaped_path());
            let (host, hostname, port, path) =
                (host.to_owned(), hostname.to_owned(), port.to_owned(), path.to_owned());
            assert_eq!(parts, (scheme, host, hostname, port, path), "{text}");
        }
    }

    #[test]
    fn queries_are_unescaped() {
        let query =
            Url::parse("https://example.com/path?k1=a&k2=b&k2=c+d%21&bad=%zz&semi;colon").unwrap().query();
        let values = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>();
        assert_eq!(query, [("k1".to_owned(), values(&["a"])), ("k2".to_owned(), values(&["b", "c d!"]))]);
        assert!(Url::parse("https://example.com/path?").unwrap().query().is_empty());
    }

    #[test]
    fn errors_are_gos() {
        let rows = [
            ("../relative-path", "parse \"../relative-path\": invalid URI for request"),
            ("https://a:b:c/", "parse \"https://a:b:c/\": invalid port \":b:c\" after host"),
            ("", "parse \"\": empty url"),
            (":foo", "parse \":foo\": missing protocol scheme"),
            ("https://a b/", "parse \"https://a b/\": invalid character \" \" in host name"),
            ("/%zz", "parse \"/%zz\": invalid URL escape \"%zz\""),
            ("/%z", "parse \"/%z\": invalid URL escape \"%z\""),
            ("https://[zz]/", "parse \"https://[zz]/\": invalid host: ParseAddr(\"zz\"): unable to parse IP"),
            ("https://[1.2.3.4]/", "parse \"https://[1.2.3.4]/\": invalid IP-literal"),
            ("https://a[::1]/", "parse \"https://a[::1]/\": invalid IP-literal"),
            ("https://[::1", "parse \"https://[::1\": missing ']' in host"),
            ("/a\n", "parse \"/a\\n\": net/url: invalid control character in URL"),
            ("https://a:1:2/", "parse \"https://a:1:2/\": invalid port \":1:2\" after host"),
            ("x://a:b:y/", "parse \"x://a:b:y/\": invalid port \":y\" after host"),
            ("https://u ser@a/", "parse \"https://u ser@a/\": net/url: invalid userinfo"),
            ("/%zé", "parse \"/%zé\": invalid URL escape \"%z\\xc3\""),
            ("not a url", "parse \"not a url\": invalid URI for request"),
        ];
        for (text, error) in rows {
            assert_eq!(Url::parse_request_uri(text).unwrap_err(), error, "{text}");
        }
    }

    #[test]
    fn urls_are_printed_as_they_were_written() {
        for text in [
            "https://u:p@example.com:80/a?b=c#d",
            "/a",
            "https://example.com",
            "mailto:x",
            "file:///etc/hosts",
        ] {
            assert_eq!(Url::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn references_have_no_scheme() {
        for (text, expected) in [
            ("webhook.svc", Ok("")),
            ("//host/path", Ok("host")),
            ("127.0.0.1:80", Err("parse \"127.0.0.1:80\": first path segment in URL cannot contain colon")),
            ("/a#%zz", Err("parse \"/a#%zz\": invalid URL escape \"%zz\"")),
            ("1:2#x", Err("parse \"1:2\": first path segment in URL cannot contain colon")),
        ] {
            let host = Url::parse(text).map(|url| url.host());
            assert_eq!(host.as_deref(), expected.map_err(str::to_owned).as_ref().copied(), "{text}");
        }
    }

    #[test]
    fn users_and_fragments_are_unescaped() {
        let url = Url::parse("https://us%65r:p%40ss@host/#a%20b").unwrap();
        assert_eq!((url.user(), url.fragment().as_str()), (Some("user:p%40ss"), "a b"));
        assert_eq!(url.to_string(), "https://user:p%40ss@host/#a%20b");
        assert_eq!(Url::parse("/#a b").unwrap().to_string(), "/#a%20b");
        assert_eq!(Url::parse("/#a%2Fb").unwrap().to_string(), "/#a%2Fb");
    }

    #[test]
    fn request_uris_are_absolute() {
        for text in [
            "http://a/b?c",
            "/path",
            "*",
            "mailto:a@b",
            "http://[::1]:80/",
            "http://[fe80::1%25en0]/",
            "x://a:b:80",
            "a:b%zz",
        ] {
            assert!(Url::parse_request_uri(text).is_ok(), "{text}");
        }
    }
}
