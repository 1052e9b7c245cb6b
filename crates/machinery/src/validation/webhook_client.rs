//! The addresses of webhooks, in the objects that configure them.

use super::{is_dns1123_subdomain, is_valid_port_num};
use crate::{ErrorList, FieldError, FieldPath, Value, ValueExt};
use pintle_go_forms::Url;

/// The bound, in bytes, of all errors about one path: each of them repeats the path.
const MAX_ERROR_TEXT: usize = 1 << 20;

/// Validates the URL of a webhook: `https`, a host, and at most a path.
pub fn validate_webhook_url(url: &str, path: &FieldPath) -> ErrorList {
    const FORM: &str = "; desired format: https://host[/path]";
    let url = match Url::parse(url) {
        Ok(url) => url,
        Err(error) => {
            return vec![FieldError::required(path, format!("url must be a valid URL: {error}{FORM}"))];
        }
    };
    let mut errors = ErrorList::new();
    let mut wrong = |value: &str, detail: String| errors.push(FieldError::invalid(path, value, detail));
    if url.scheme() != "https" {
        wrong(url.scheme(), format!("'https' is the only allowed URL scheme{FORM}"));
    }
    if url.host().is_empty() {
        wrong("", format!("host must be specified{FORM}"));
    }
    if let Some(user) = url.user() {
        wrong(user, "user information is not permitted in the URL".to_owned());
    }
    if !url.fragment().is_empty() {
        wrong(&url.fragment(), "fragments are not permitted in the URL".to_owned());
    }
    if !url.raw_query().is_empty() {
        wrong(url.raw_query(), "query parameters are not permitted in the URL".to_owned());
    }
    errors
}

/// Validates the service reference of a webhook.
pub fn validate_webhook_service(service: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = ErrorList::new();
    // The reference swaps the two paths.
    for (name, shown) in [("namespace", "name"), ("name", "namespace")] {
        if service.str_at(name).is_empty() {
            errors.push(FieldError::required(&path.child(shown), ""));
        }
    }
    let port = service.i64_at("port").unwrap_or_default();
    let wrong = is_valid_port_num(port);
    if !wrong.is_empty() {
        let detail = format!("port is not valid: {}", wrong.join(", "));
        errors.push(FieldError::invalid(&path.child("port"), port, detail));
    }
    validate_path(service.str_at("path"), &path.child("path"), &mut errors);
    errors
}

fn validate_path(url_path: &str, path: &FieldPath, errors: &mut ErrorList) {
    if matches!(url_path, "" | "/") {
        return;
    }
    let wrong = |detail: String| FieldError::invalid(path, url_path, detail);
    if url_path == "//" {
        return errors.push(wrong("segment[0] may not be empty".to_owned()));
    }
    if !url_path.starts_with('/') {
        errors.push(wrong("must start with a '/'".to_owned()));
    }
    let mut rest = url_path.chars();
    rest.next();
    let rest = rest.as_str();
    for (index, segment) in rest.strip_suffix('/').unwrap_or(rest).split('/').enumerate() {
        if errors.len() * url_path.len() > MAX_ERROR_TEXT {
            return;
        }
        if segment.is_empty() {
            errors.push(wrong(format!("segment[{index}] may not be empty")));
            continue;
        }
        for failure in is_dns1123_subdomain(segment) {
            errors.push(wrong(format!("segment[{index}]: {failure}")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_tree::json;

    fn texts(errors: ErrorList) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn urls_have_a_host_and_nothing_but_a_path() {
        let check = |url: &str, expected: &[&str]| {
            assert_eq!(texts(validate_webhook_url(url, &FieldPath::new("url"))), expected, "{url}");
        };
        check("https://example.com:443/a/b", &[]);
        check(
            "http://a",
            &[
                "url: Invalid value: \"http\": 'https' is the only allowed URL scheme; desired format: https://host[/path]",
            ],
        );
        check(
            "https://u:p@a?x=y#z",
            &[
                "url: Invalid value: \"u:p\": user information is not permitted in the URL",
                "url: Invalid value: \"z\": fragments are not permitted in the URL",
                "url: Invalid value: \"x=y\": query parameters are not permitted in the URL",
            ],
        );
    }

    #[test]
    fn services_have_names_a_port_and_a_plain_path() {
        let check = |service: Value, expected: &[&str]| {
            assert_eq!(
                texts(validate_webhook_service(&service, &FieldPath::new("s"))),
                expected,
                "{service}"
            );
        };
        check(json!({"name": "a", "namespace": "b", "port": 1, "path": "/a/b.c/"}), &[]);
        check(json!({"namespace": "b", "port": 1}), &["s.namespace: Required value"]);
        check(
            json!({"name": "a", "namespace": "b", "port": 0}),
            &["s.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive"],
        );
        check(
            json!({"name": "a", "namespace": "b", "port": 1, "path": "//"}),
            &["s.path: Invalid value: \"//\": segment[0] may not be empty"],
        );
    }

    #[test]
    fn a_path_of_many_wrong_segments_gives_few_errors() {
        let service = json!({"name": "a", "namespace": "b", "port": 1, "path": "/".repeat(100_000)});
        assert!(validate_webhook_service(&service, &FieldPath::new("s")).len() < 20);
    }
}
