//! Fuzzes the request info: paths and queries of any client.

use http::Method;
use pintle_apiserver::base::{query::Query, request_info::RequestInfo};
use pintle_machinery::Value;
use pintle_machinery::options::{ListOptions, WriteOptions, delete_options_from};

/// The data is a method, a space, a path and optionally a query. All attributes that are authorized are in the path:
/// the request info loses no part of the path and adds none.
pub(crate) fn request_info(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (method, target) = text.split_once(' ').unwrap_or(("GET", text));
    let Ok(method) = method.parse::<Method>() else { return };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let query = Query::parse(query);
    let info = RequestInfo::parse(&method, path, &query);
    assert_eq!(RequestInfo::parse(&method, path, &query), info);
    options(&query);
    let path = path.trim_matches('/');
    if !info.is_resource_request {
        assert_eq!(info.verb, method.as_str().to_ascii_lowercase());
        assert_eq!((info.scope(), info.resource.as_str(), info.name.as_str()), ("", "", ""));
        return;
    }
    let own_name = if info.is_named { info.name.as_str() } else { "" };
    let mut tail = vec![info.resource.as_str(), own_name];
    if info.verb != "proxy" {
        tail.push(&info.subresource);
    }
    tail.extend(info.rest.iter().map(String::as_str));
    let tail = tail.join("/");
    let tail = tail.trim_end_matches('/');
    assert!(path.trim_end_matches('/').ends_with(tail), "{path} does not end with {tail}");
    let prefix = match info.api_group.is_empty() {
        true if path.starts_with("api/") => format!("api/{}/", info.api_version),
        _ => format!("apis/{}/{}/", info.api_group, info.api_version),
    };
    assert!(path.starts_with(&prefix), "{path} does not start with {prefix}");
    let namespace = format!("/namespaces/{}", info.namespace);
    assert!(info.namespace.is_empty() || path.contains(&namespace), "{path} is not in {}", info.namespace);
    if !info.is_named && !info.name.is_empty() {
        assert!(matches!(info.verb.as_str(), "list" | "watch"), "only collections are narrowed to a name");
        assert!(!info.name.contains('/'));
    }
    let verbs =
        ["get", "list", "watch", "proxy", "create", "update", "patch", "delete", "deletecollection", ""];
    assert!(verbs.contains(&info.verb.as_str()), "{}", info.verb);
    if info.is_long_running() {
        assert!(matches!(info.verb.as_str(), "watch" | "proxy") || !info.subresource.is_empty());
    }
}

/// Options are parsed or refused; the start of a list is inside the listed range.
fn options(query: &Query) {
    if let Ok(options) = ListOptions::parse(query.pairs(), true) {
        let _ = options.watch_revision();
        let start = options.start("/registry/pods/", false);
        assert_eq!(options.start("/registry/pods/", false), start);
    }
    let _ = WriteOptions::parse(query.pairs(), "PatchOptions");
    let _ = WriteOptions::parse_apply(query.pairs());
    let _ = delete_options_from(&Value::Null, query.pairs(), true);
}
