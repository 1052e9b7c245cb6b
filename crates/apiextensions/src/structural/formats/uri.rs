//! Accepts the same URLs as Go's `url.ParseRequestURI` (<https://pkg.go.dev/net/url#ParseRequestURI>).

use std::net::IpAddr;

/// A part of a URL: hosts allow fewer escapes than other parts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Host,
    Zone,
    Other,
}

/// Whether the text is an absolute URL or an absolute path.
pub(super) fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let Some((scheme, rest)) = split_scheme(text) else { return false };
    let rest = rest.split_once('?').map_or(rest, |(before, _)| before);
    if !rest.starts_with('/') {
        // With a scheme, the rest is opaque.
        return !scheme.is_empty();
    }
    let mut path = rest;
    if !scheme.is_empty()
        && let Some(after) = rest.strip_prefix("//")
    {
        let end = after.find('/').unwrap_or(after.len());
        let (authority, rest) = after.split_at_checked(end).unwrap_or((after, ""));
        if !is_authority(scheme, authority) {
            return false;
        }
        path = rest;
    }
    unescapes(path, Part::Other)
}

/// The scheme (empty for none) and the rest. `None` when the text begins with a colon.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if index > 0 => {}
            b':' if index == 0 => return None,
            b':' => return text.split_once(':'),
            _ => break,
        }
    }
    Some(("", text))
}

fn is_authority(scheme: &str, authority: &str) -> bool {
    let (user, host) =
        authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    is_host(scheme, host) && user.is_none_or(is_user)
}

fn is_user(user: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
    user.bytes().all(allowed) && user.splitn(2, ':').all(|part| unescapes(part, Part::Other))
}

fn is_host(scheme: &str, host: &str) -> bool {
    match host.rfind('[') {
        Some(0) => {
            let Some((literal, port)) = host.strip_prefix('[').and_then(|host| host.rsplit_once(']')) else {
                return false;
            };
            is_port(port) && is_ip_literal(literal)
        }
        Some(_) => false,
        None => {
            let first = host.find(':');
            let colon = match scheme.to_ascii_lowercase().as_str() {
                "http" | "https" => first,
                _ => host.rfind(':'),
            };
            let port = colon.and_then(|at| host.get(at..)).unwrap_or_default();
            is_port(port) && unescapes(host, Part::Host)
        }
    }
}

/// Whether this is an IPv6 address, optionally with a zone after `%25`.
fn is_ip_literal(literal: &str) -> bool {
    let (address, zone) = match literal.find("%25") {
        Some(at) => literal.split_at_checked(at).unwrap_or((literal, "")),
        None => (literal, ""),
    };
    if !unescapes(address, Part::Host) || !unescapes(zone, Part::Zone) {
        return false;
    }
    // An escaped byte in the address is not ASCII, so it does not parse.
    matches!(address.parse(), Ok(IpAddr::V6(_))) && zone != "%25"
}

fn is_port(port: &str) -> bool {
    match port.strip_prefix(':') {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_digit()),
        None => port.is_empty(),
    }
}

/// Whether every `%` begins an escape that is allowed in this part.
fn unescapes(text: &str, part: Part) -> bool {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if byte != b'%' {
            if part != Part::Other && byte < 0x80 && !is_host_byte(byte) {
                return false;
            }
            at += 1;
            continue;
        }
        let digit = |at: usize| bytes.get(at).and_then(|&byte| char::from(byte).to_digit(16));
        let (Some(high), Some(low)) = (digit(at + 1), digit(at + 2)) else { return false };
        let value = (high * 16 + low) as u8;
        let is_percent = bytes.get(at..at + 3) == Some(b"%25");
        let allowed = match part {
            Part::Other => true,
            // Hosts may escape bytes beyond ASCII.
            Part::Host => high >= 8 || is_percent,
            Part::Zone => is_percent || value == b' ' || is_host_byte(value),
        };
        if !allowed {
            return false;
        }
        at += 3;
    }
    true
}

fn is_host_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:[]<>\"".contains(&byte)
}
