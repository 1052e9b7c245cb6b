//! The parts that connects to nodes, pods and services share: names with a port, paths, missing objects.

use pintle_go_forms::clean_path;
use pintle_machinery::{GroupResource, Status, Value};
use pintle_registry::{RequestContext, Scheme};

/// The name in the path of a proxied request: `NAME`, `NAME:PORT` or `SCHEME:NAME:PORT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProxyName<'a> {
    pub(super) scheme: Scheme,
    pub(super) name: &'a str,
    /// The number or the name of a port; "" for none.
    pub(super) port: &'a str,
}

impl<'a> ProxyName<'a> {
    /// Parses a name.
    ///
    /// # Errors
    /// 400 for another form, which names the `kind` in lower case.
    pub(super) fn parse(text: &'a str, kind: &str) -> Result<ProxyName<'a>, Status> {
        let parts: Vec<&str> = text.splitn(4, ':').collect();
        let (scheme, name, port) = match parts.as_slice() {
            [name] => ("", *name, ""),
            [name, port] => ("", *name, *port),
            [scheme, name, port] => (*scheme, *name, *port),
            _ => ("", "", ""),
        };
        let scheme = match scheme {
            "" | "http" => Some(Scheme::Http),
            "https" => Some(Scheme::Https),
            _ => None,
        };
        match scheme.filter(|_| !name.is_empty()) {
            Some(scheme) => Ok(ProxyName { scheme, name, port }),
            None => Err(Status::bad_request(format!("invalid {kind} request {text:?}"))),
        }
    }
}

/// The path that a proxied request asks for, without `.`, `..` and doubled slashes; "" for none.
pub(super) fn proxied_path(path: &str) -> String {
    if path.is_empty() {
        return String::new();
    }
    let mut clean = clean_path(path);
    if path.ends_with('/') && !clean.ends_with('/') {
        clean.push('/');
    }
    clean
}

/// Reads an object that a connect depends on. A missing one is told as one of the resource `of` the request.
///
/// # Errors
/// 404 when there is no such object, and the error of the store.
pub(super) async fn read(
    context: &RequestContext<'_>,
    of: &str,
    resource: &str,
    namespace: &str,
    name: &str,
) -> Result<Value, Status> {
    let found = context.registry.get(&GroupResource::new("", resource), namespace, name).await;
    found.map_err(|status| match status.code {
        404 => Status::not_found(&GroupResource::new("", of), name),
        _ => status,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_ports_and_schemes() {
        let check = |text: &str, expected: Option<(Scheme, &str, &str)>| {
            let parsed = ProxyName::parse(text, "pod").map(|name| (name.scheme, name.name, name.port));
            let expected = expected.ok_or_else(|| format!("invalid pod request {text:?}"));
            assert_eq!(parsed.map_err(|status| status.message), expected);
        };
        check("a", Some((Scheme::Http, "a", "")));
        check("a:80", Some((Scheme::Http, "a", "80")));
        check("a:", Some((Scheme::Http, "a", "")));
        check("https:a:", Some((Scheme::Https, "a", "")));
        check("http:a:web", Some((Scheme::Http, "a", "web")));
        check(":a:80", Some((Scheme::Http, "a", "80")));
        check("ftp:a:80", None);
        check("HTTPS:a:80", None);
        check("a:b:c:d", None);
        check(":80", None);
        check("https::80", None);
    }

    #[test]
    fn paths_are_cleaned_and_keep_their_last_slash() {
        let check = |path: &str, expected: &str| assert_eq!(proxied_path(path), expected, "{path}");
        check("", "");
        check("/", "/");
        check("/a//b/../c", "/a/c");
        check("/a/b/", "/a/b/");
        check("/../../etc/", "/etc/");
        check("//a//b//", "/a/b/");
        check("/a/.", "/a");
    }
}
