//! Derives verb, resource and namespace of a request from its method, path and query alone.
//!
//! The rules are those of <https://kubernetes.io/docs/reference/access-authn-authz/authorization/#determine-the-request-verb>.

use crate::base::query::Query;
use http::Method;
use pintle_machinery::{
    GroupResource, GroupVersion, GroupVersionResource, options::ListOptions,
    validation::validate_path_segment_name,
};

/// The path segment before the name of a namespace.
const NAMESPACES: &str = "namespaces";

/// The API address of a request; filters and handlers read it from the request's extensions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestInfo {
    /// Whether the path is below `/api/VERSION` or `/apis/GROUP/VERSION`.
    pub is_resource_request: bool,
    /// `get`, `list`, `watch`, `create`, …; the HTTP method in lower case for other paths.
    pub verb: String,
    /// The group, "" for the core group.
    pub api_group: String,
    /// The version.
    pub api_version: String,
    /// The namespace, or "".
    pub namespace: String,
    /// The resource, such as `pods`.
    pub resource: String,
    /// The subresource, or "".
    pub subresource: String,
    /// The object's name, or "".
    pub name: String,
    /// Whether the path names an object: a field selector for one name sets `name`, too.
    pub is_named: bool,
    /// Whether the resource stands below a namespace in the path, even an empty one. `namespace` is also set by the path
    /// of a namespace itself.
    pub is_in_namespace: bool,
    /// The path segments after the subresource.
    pub rest: Vec<String>,
    /// The decoded path of a request that is not for a resource.
    pub path: String,
}

impl RequestInfo {
    /// Parses a request's method, decoded path and query.
    pub fn parse(method: &Method, path: &str, query: &Query) -> RequestInfo {
        let mut info = RequestInfo { verb: method.as_str().to_ascii_lowercase(), ..RequestInfo::default() };
        /// Few paths have more.
        const PARTS: usize = 8;
        let mut parts: Vec<&str> = Vec::with_capacity(PARTS);
        parts.extend(path.trim_matches('/').split('/'));
        let rest = match parts.as_slice() {
            ["api", version, rest @ ..] => {
                info.api_version = (*version).to_owned();
                rest
            }
            ["apis", group, version, rest @ ..] => {
                info.api_group = (*group).to_owned();
                info.api_version = (*version).to_owned();
                rest
            }
            _ => return RequestInfo { path: path.to_owned(), ..info },
        };
        if rest.is_empty() || rest == [""] {
            return RequestInfo { path: path.to_owned(), ..info };
        }
        info.is_resource_request = true;
        let mut rest = rest;
        // Deprecated path prefixes, used before `watch=true` and the `proxy` subresource existed.
        let mut verb_of_path = None;
        if let [verb @ ("watch" | "proxy"), after @ ..] = rest {
            verb_of_path = Some(*verb);
            rest = after;
        }
        info.verb = match *method {
            Method::POST => "create",
            Method::GET => "get",
            Method::HEAD => "get",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE => "delete",
            _ => "",
        }
        .to_owned();
        if let Some(verb) = verb_of_path {
            info.verb = verb.to_owned();
        }
        if let [NAMESPACES, namespace, after @ ..] = rest {
            info.namespace = (*namespace).to_owned();
            // `status` and `finalize` are subresources of the namespace itself; any other segment is a resource in it.
            if !after.is_empty() && !matches!(after, ["status" | "finalize", ..]) {
                rest = after;
                info.is_in_namespace = true;
            }
        }
        let mut rest = rest.iter();
        info.resource = rest.next().copied().unwrap_or_default().to_owned();
        info.name = rest.next().copied().unwrap_or_default().to_owned();
        info.is_named = !info.name.is_empty();
        if info.verb != "proxy" {
            info.subresource = rest.next().copied().unwrap_or_default().to_owned();
        }
        info.rest = rest.map(|part| (*part).to_owned()).collect();
        if info.name.is_empty() {
            match info.verb.as_str() {
                "get" if query.flag("watch") => info.verb = "watch".to_owned(),
                "get" => info.verb = "list".to_owned(),
                "delete" => info.verb = "deletecollection".to_owned(),
                _ => {}
            }
        }
        if verb_of_path.is_none() && matches!(info.verb.as_str(), "list" | "watch") && info.name.is_empty() {
            // A field selector for one name makes authorization check that name.
            if let Some(name) = selected_name(query) {
                info.name = name;
            }
        }
        info
    }

    /// Whether the path ends with a deprecated prefix, such as `/api/v1/watch`.
    pub(crate) fn is_prefix_alone(&self) -> bool {
        let parts = [&self.resource, &self.namespace, &self.name];
        self.is_resource_request
            && matches!(self.verb.as_str(), "watch" | "proxy")
            && parts.iter().all(|part| part.is_empty())
    }

    /// The namespace of an object with this name. A namespace is in itself, also when its path does not name it, but not
    /// one whose name is generated: that has no name then.
    pub(crate) fn namespace_of<'a>(&'a self, name: &'a str) -> &'a str {
        let is_namespace = self.resource == NAMESPACES && self.api_group.is_empty();
        if self.namespace.is_empty() && is_namespace { name } else { &self.namespace }
    }

    /// The group, version and resource.
    pub fn group_version_resource(&self) -> GroupVersionResource {
        GroupVersionResource::new(&*self.api_group, &*self.api_version, &*self.resource)
    }

    /// The group and resource.
    pub fn group_resource(&self) -> GroupResource {
        GroupResource::new(self.api_group.clone(), self.resource.clone())
    }

    /// The group and version.
    pub fn group_version(&self) -> GroupVersion {
        GroupVersion::new(self.api_group.clone(), self.api_version.clone())
    }

    /// Whether the request may stay open for longer than the request timeout.
    pub fn is_long_running(&self) -> bool {
        matches!(self.verb.as_str(), "watch" | "proxy")
            || matches!(self.subresource.as_str(), "exec" | "attach" | "portforward" | "proxy" | "log")
            || (!self.is_resource_request && self.path.starts_with("/debug/pprof/"))
    }

    /// `namespace`, `cluster` or `resource`, as metrics label it.
    pub fn scope(&self) -> &'static str {
        match (self.is_resource_request, self.name.is_empty(), self.namespace.is_empty()) {
            (false, _, _) => "",
            (true, _, _) if self.verb == "create" => "resource",
            (true, false, _) => "resource",
            (true, true, false) => "namespace",
            (true, true, true) => "cluster",
        }
    }
}

/// The one name that the field selector allows. A query that cannot be decoded selects none.
fn selected_name(query: &Query) -> Option<String> {
    query.first("fieldSelector").filter(|selector| selector.contains("metadata.name"))?;
    let (options, _) = ListOptions::decode(query.pairs(), true).ok()?;
    let name = options.field_selector.requires_exact_match("metadata.name")?;
    (!name.is_empty() && validate_path_segment_name(name, false).is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_as_kubernetes_reads_them() {
        // method, path, query, (verb, group, version, namespace, resource, name, subresource)
        let rows = [
            ("GET", "/api/v1/pods", "", ("list", "", "v1", "", "pods", "", "")),
            ("GET", "/api/v1/pods", "watch=1", ("watch", "", "v1", "", "pods", "", "")),
            ("GET", "/api/v1/pods", "watch=false", ("list", "", "v1", "", "pods", "", "")),
            ("GET", "/api/v1/namespaces/a", "", ("get", "", "v1", "a", "namespaces", "a", "")),
            (
                "PUT",
                "/api/v1/namespaces/a/finalize",
                "",
                ("update", "", "v1", "a", "namespaces", "a", "finalize"),
            ),
            ("GET", "/api/v1/namespaces/a/pods/b/log", "", ("get", "", "v1", "a", "pods", "b", "log")),
            (
                "DELETE",
                "/apis/apps/v1/namespaces/a/deployments",
                "",
                ("deletecollection", "apps", "v1", "a", "deployments", "", ""),
            ),
            ("GET", "/api/v1/watch/pods", "", ("watch", "", "v1", "", "pods", "", "")),
            (
                "GET",
                "/api/v1/watch/pods",
                "fieldSelector=metadata.name%3Dx",
                ("watch", "", "v1", "", "pods", "", ""),
            ),
            ("POST", "/api/v1/proxy/namespaces/a/pods/b/c/d", "", ("proxy", "", "v1", "a", "pods", "b", "")),
            (
                "GET",
                "/api/v1/pods",
                "fieldSelector=metadata.name%3Dx",
                ("list", "", "v1", "", "pods", "x", ""),
            ),
            (
                "GET",
                "/api/v1/pods",
                "fieldSelector=metadata.name%3Dx&limit=1x",
                ("list", "", "v1", "", "pods", "", ""),
            ),
            (
                "GET",
                "/api/v1/pods",
                "watch=1&fieldSelector=metadata.name%3Dx&labelSelector=a%3D%3D%3Db",
                ("watch", "", "v1", "", "pods", "", ""),
            ),
        ];
        for (method, path, query, want) in rows {
            let info = RequestInfo::parse(&method.parse().unwrap(), path, &Query::parse(query));
            let got = (
                info.verb.as_str(),
                info.api_group.as_str(),
                info.api_version.as_str(),
                info.namespace.as_str(),
                info.resource.as_str(),
                info.name.as_str(),
                info.subresource.as_str(),
            );
            assert_eq!(got, want, "{method} {path}?{query}");
            assert!(info.is_resource_request);
        }
        for (path, is_in_namespace) in [
            ("/api/v1/namespaces/a", false),
            ("/api/v1/namespaces/a/status", false),
            ("/api/v1/namespaces/a/pods", true),
            ("/api/v1/namespaces/a/namespaces", true),
            ("/api/v1/namespaces/a/namespaces/b/status", true),
            ("/api/v1/watch/namespaces/a/namespaces/a", true),
            ("/api/v1/namespaces//namespaces/b", true),
            ("/api/v1/namespaces//pods", true),
            ("/api/v1/pods", false),
        ] {
            let info = RequestInfo::parse(&Method::GET, path, &Query::parse(""));
            assert_eq!(info.is_in_namespace, is_in_namespace, "{path}");
        }
        for (path, is_prefix_alone) in [
            ("/api/v1/watch", true),
            ("/apis/apps/v1/proxy/", true),
            ("/api/v1/watch/pods", false),
            ("/api/v1/watch/namespaces/a", false),
            ("/api/v1//pods", false),
            ("/api/v1/namespaces/a//pods", false),
        ] {
            let info = RequestInfo::parse(&Method::GET, path, &Query::parse("watch=1"));
            assert_eq!(info.is_prefix_alone(), is_prefix_alone, "{path}");
        }
        // A method of this name is no prefix.
        let info = RequestInfo::parse(&Method::from_bytes(b"WATCH").unwrap(), "/version", &Query::parse(""));
        assert!(!info.is_prefix_alone());
        for path in ["/", "/api", "/apis", "/apis/apps", "/apis/apps/v1", "/healthz", "/api/v1/"] {
            let info = RequestInfo::parse(&Method::GET, path, &Query::parse(""));
            assert!(!info.is_resource_request, "{path}");
            assert_eq!(info.verb, "get");
        }
    }
}
