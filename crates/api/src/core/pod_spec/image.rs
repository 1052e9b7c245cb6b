//! Parses image references, for defaults that depend on the tag.
//!
//! The grammar is the one of <https://pkg.go.dev/github.com/distribution/reference>: `[domain/]path[:tag][@digest]`.

/// Whether the default is to pull the image on each start: the tag is `latest`, or tag and digest are absent. False for
/// a malformed reference.
pub(super) fn is_latest(image: &str) -> bool {
    matches!(
        parse(image),
        Some(Reference { tag: Some("latest"), .. } | Reference { tag: None, digest: false })
    )
}

struct Reference<'a> {
    tag: Option<&'a str>,
    digest: bool,
}

fn parse(image: &str) -> Option<Reference<'_>> {
    if image.len() == 64 && image.bytes().all(|byte| byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase()) {
        return None; // an image's identifier, which no name may look like
    }
    let (name, digest) = match image.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (image, None),
    };
    let (domain, remainder) = match name.split_once('/') {
        Some((first, rest)) if is_domain_like(first) => (Some(first), rest),
        _ => (None, name),
    };
    let (path, tag) = match remainder.split_once(':') {
        Some((path, tag)) => (path, Some(tag)),
        None => (remainder, None),
    };
    let valid = domain.is_none_or(is_domain)
        && path.len() + domain.map_or(0, str::len) < 255
        && path.split('/').all(is_path_component)
        && tag.is_none_or(is_tag)
        && digest.is_none_or(is_digest);
    valid.then_some(Reference { tag, digest: digest.is_some() })
}

/// Whether the first part of a path is a registry host: it has characters that path components do not allow.
fn is_domain_like(part: &str) -> bool {
    part.contains(['.', ':']) || part == "localhost" || part.bytes().any(|byte| byte.is_ascii_uppercase())
}

fn is_domain(domain: &str) -> bool {
    let (host, port) = match domain.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, port)) => {
            let valid = !address.is_empty() && address.bytes().all(|b| b.is_ascii_hexdigit() || b == b':');
            if !valid {
                return false;
            }
            match port.strip_prefix(':') {
                None => return port.is_empty(),
                Some(port) => ("v6", Some(port)),
            }
        }
        None => match domain.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (domain, None),
        },
    };
    let is_label = |label: &str| {
        let bytes = label.as_bytes();
        bytes.first().is_some_and(u8::is_ascii_alphanumeric)
            && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
            && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
    };
    host.split('.').all(is_label)
        && port.is_none_or(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Lower-case letters and digits, separated by a dot, one or two underscores, or dashes.
fn is_path_component(component: &str) -> bool {
    let is_alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = component.as_bytes();
    if !bytes.first().is_some_and(is_alphanumeric) || !bytes.last().is_some_and(is_alphanumeric) {
        return false;
    }
    component.split(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit()).all(|separator| {
        matches!(separator, "" | "." | "_" | "__") || separator.bytes().all(|byte| byte == b'-')
    })
}

fn is_tag(tag: &str) -> bool {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    tag.len() <= 128
        && tag.as_bytes().first().is_some_and(is_word)
        && tag.bytes().all(|byte| is_word(&byte) || byte == b'.' || byte == b'-')
}

fn is_digest(digest: &str) -> bool {
    let Some((algorithm, encoded)) = digest.split_once(':') else { return false };
    let length = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _ => return false,
    };
    encoded.len() == length && encoded.bytes().all(|b| b.is_ascii_hexdigit() && !b.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::is_latest;

    #[test]
    fn only_the_tag_latest_is_pulled_always() {
        let digest = "sha256:".to_owned() + &"a".repeat(64);
        let rows = [
            ("nginx", true),
            ("nginx:latest", true),
            ("nginx:1.27", false),
            ("registry.example:5000/nginx", true),
            ("registry.example:5000/a/b_c/d--e:latest", true),
            ("localhost:5000", false),
            ("[::1]:5000/app", true),
            ("UPPER/app", true),
            ("app/UPPER", false),
            ("bad image", false),
            ("a..b", false),
            ("", false),
            ("nginx@sha256:short", false),
            (&format!("nginx@{digest}"), false),
            (&format!("nginx:latest@{digest}"), true),
            (&"a".repeat(64), false),
            (&"g".repeat(64), true),
        ];
        for (image, latest) in rows {
            assert_eq!(is_latest(image), latest, "{image}");
        }
    }
}
