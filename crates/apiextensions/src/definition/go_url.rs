//! Parses URLs as Go's `net/url` does, with its error messages
//! (<https://pkg.go.dev/net/url#Parse>).

use pintle_machinery::text::quote;

/// The parts of a URL that validation reads.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct GoUrl {
    pub(super) scheme: String,
    /// `user` or `user:password`, unparsed.
    pub(super) user: Option<String>,
    /// The host with the port.
    pub(super) host: String,
    pub(super) query: String,
    pub(super) fragment: String,
}

/// Parses a URL or a reference.
///
/// # Errors
/// Go's message.
pub(super) fn parse(text: &str) -> Result<GoUrl, String> {
    let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
    let url = parse_rest(rest, false).map_err(|error| format!("parse {}: {error}", quote(rest)))?;
    let fragment = unescape(fragment, false).map_err(|error| format!("parse {}: {error}", quote(text)))?;
    Ok(GoUrl { fragment, ..url })
}

/// Parses a URL or an absolute path, without fragment.
///
/// # Errors
/// Go's message.
pub(super) fn parse_request_uri(text: &str) -> Result<GoUrl, String> {
    parse_rest(text, true).map_err(|error| format!("parse {}: {error}", quote(text)))
}

fn parse_rest(text: &str, via_request: bool) -> Result<GoUrl, String> {
    if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if text.is_empty() && via_request {
        return Err("empty url".to_owned());
    }
    let mut url = GoUrl::default();
    if text == "*" {
        return Ok(url);
    }
    let (scheme, rest) = scheme_of(text)?;
    url.scheme = scheme.to_ascii_lowercase();
    let (rest, query) = match rest.strip_suffix('?').filter(|rest| !rest.contains('?')) {
        Some(rest) => (rest, ""),
        None => rest.split_once('?').unwrap_or((rest, "")),
    };
    url.query = query.to_owned();
    if !rest.starts_with('/') {
        if !url.scheme.is_empty() {
            // The rest is opaque.
            return Ok(url);
        }
        if via_request {
            return Err("invalid URI for request".to_owned());
        }
        let segment = rest.split('/').next().unwrap_or_default();
        if segment.contains(':') {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    let mut path = rest;
    let has_authority = !url.scheme.is_empty() || (!via_request && !rest.starts_with("///"));
    if let Some(rest) = rest.strip_prefix("//").filter(|_| has_authority) {
        let end = rest.find('/').unwrap_or(rest.len());
        let (authority, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
        path = after;
        authority_of(authority, &mut url)?;
    }
    unescape(path, false)?;
    Ok(url)
}

fn scheme_of(text: &str) -> Result<(&str, &str), String> {
    for (at, c) in text.char_indices() {
        match c {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if at > 0 => {}
            ':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            ':' => {
                let (scheme, rest) = text.split_at_checked(at).unwrap_or((text, ""));
                return Ok((scheme, rest.strip_prefix(':').unwrap_or(rest)));
            }
            _ => return Ok(("", text)),
        }
    }
    Ok(("", text))
}

fn authority_of(authority: &str, url: &mut GoUrl) -> Result<(), String> {
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    url.host = host_of(host)?;
    if let Some(user) = user {
        let is_valid = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
        if !user.chars().all(is_valid) {
            return Err("net/url: invalid userinfo".to_owned());
        }
        unescape(user, false)?;
        url.user = Some(user.to_owned());
    }
    Ok(())
}

fn host_of(host: &str) -> Result<String, String> {
    let after = if host.starts_with('[') {
        let Some((_, after)) = host.rsplit_once(']') else { return Err("missing ']' in host".to_owned()) };
        after
    } else {
        host.rfind(':').and_then(|at| host.get(at..)).unwrap_or_default()
    };
    let is_port = after.is_empty()
        || after.strip_prefix(':').is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    if !is_port {
        return Err(format!("invalid port {} after host", quote(after)));
    }
    unescape(host, true)
}

/// Removes escapes. In a host only bytes beyond ASCII may be escaped.
fn unescape(text: &str, in_host: bool) -> Result<String, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        if byte != b'%' {
            let is_odd =
                byte < 0x80 && !byte.is_ascii_alphanumeric() && !b"-._~!$&'()*+,;=:[]<>\"".contains(&byte);
            if in_host && is_odd {
                return Err(format!(
                    "invalid character {} in host name",
                    quote(&char::from(byte).to_string())
                ));
            }
            out.push(byte);
            rest = after;
            continue;
        }
        let digit = |at: usize| after.get(at).and_then(|digit| char::from(*digit).to_digit(16));
        let (Some(high), Some(low)) = (digit(0), digit(1)) else {
            let wrong = String::from_utf8_lossy(rest.get(..3).unwrap_or(rest)).into_owned();
            return Err(format!("invalid URL escape {}", quote(&wrong)));
        };
        let value = u8::try_from(high * 16 + low).unwrap_or_default();
        if in_host && high < 8 && rest.get(..3) != Some(b"%25") {
            let wrong = String::from_utf8_lossy(rest.get(..3).unwrap_or(rest)).into_owned();
            return Err(format!("invalid URL escape {}", quote(&wrong)));
        }
        out.push(value);
        rest = after.get(2..).unwrap_or_default();
    }
    Ok(String::from_utf8_lossy(&out).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_as_go_reads_them() {
        let check = |text: &str, expected: Result<(&str, &str), &str>| {
            let url = parse(text);
            let parts = url.as_ref().map(|url| (url.scheme.as_str(), url.host.as_str()));
            assert_eq!(parts.map_err(String::as_str), expected, "{text}");
        };
        check("https://host:8443/path", Ok(("https", "host:8443")));
        check("HTTPS://u:p@host?q#f", Ok(("https", "host")));
        check("/only/a/path", Ok(("", "")));
        check("webhook.svc", Ok(("", "")));
        check("localhost:8080", Ok(("localhost", "")));
        check("127.0.0.1:80", Err(r#"parse "127.0.0.1:80": first path segment in URL cannot contain colon"#));
        check("://x", Err(r#"parse "://x": missing protocol scheme"#));
        check("https://h:x/", Err(r#"parse "https://h:x/": invalid port ":x" after host"#));
        check("https://a b/", Err(r#"parse "https://a b/": invalid character " " in host name"#));
        check("https://h/%zz", Err(r#"parse "https://h/%zz": invalid URL escape "%zz""#));
        check("https://[::1/", Err(r#"parse "https://[::1/": missing ']' in host"#));
        check("a\nb", Err(r#"parse "a\nb": net/url: invalid control character in URL"#));
        assert_eq!(parse_request_uri("nope").unwrap_err(), r#"parse "nope": invalid URI for request"#);
    }
}
