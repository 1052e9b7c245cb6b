//! The labels of requests.

use crate::base::request_info::RequestInfo;
use http::Method;
use std::borrow::Cow;

/// The verb label of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestVerb {
    Get,
    List,
    Watch,
    Post,
    Put,
    Patch,
    Apply,
    Delete,
    Connect,
    Other,
}

/// Subresources whose requests have the verb `CONNECT`.
const CONNECTS: [&str; 5] = ["log", "exec", "portforward", "attach", "proxy"];

impl RequestVerb {
    /// The number of verbs.
    pub(super) const COUNT: usize = 10;

    /// The verb of a request. `is_apply` tells whether the body of a patch is an apply configuration.
    pub(crate) fn of(method: &Method, info: &RequestInfo, is_apply: bool) -> RequestVerb {
        if info.is_resource_request && CONNECTS.contains(&&*info.subresource) {
            return RequestVerb::Connect;
        }
        match *method {
            _ if info.verb == "watch" => RequestVerb::Watch,
            Method::GET | Method::HEAD => match info.scope() {
                "resource" | "" => RequestVerb::Get,
                _ => RequestVerb::List,
            },
            Method::POST => RequestVerb::Post,
            Method::PUT => RequestVerb::Put,
            Method::PATCH if is_apply => RequestVerb::Apply,
            Method::PATCH => RequestVerb::Patch,
            Method::DELETE => RequestVerb::Delete,
            _ => RequestVerb::Other,
        }
    }

    /// The value of the label.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            RequestVerb::Get => "GET",
            RequestVerb::List => "LIST",
            RequestVerb::Watch => "WATCH",
            RequestVerb::Post => "POST",
            RequestVerb::Put => "PUT",
            RequestVerb::Patch => "PATCH",
            RequestVerb::Apply => "APPLY",
            RequestVerb::Delete => "DELETE",
            RequestVerb::Connect => "CONNECT",
            RequestVerb::Other => "other",
        }
    }
}

/// The labels of a request. Names of the path are labels only if the server serves them: labels are kept for ever, and
/// clients can make up any number of names.
#[derive(Debug, Clone)]
pub(crate) struct RequestLabels {
    pub(crate) verb: RequestVerb,
    pub(crate) group: Cow<'static, str>,
    pub(crate) version: Cow<'static, str>,
    pub(crate) resource: Cow<'static, str>,
    pub(crate) subresource: Cow<'static, str>,
    pub(crate) scope: &'static str,
    pub(crate) component: &'static str,
}

/// The component of requests for resources.
pub(crate) const COMPONENT: &str = "apiserver";

impl RequestLabels {
    /// The number of scopes of requests for resources.
    pub(super) const SCOPES: usize = 3;

    /// The labels of a request for a resource that the server serves.
    pub(crate) fn of_resource(verb: RequestVerb, info: &RequestInfo) -> RequestLabels {
        RequestLabels {
            verb,
            group: info.api_group.clone().into(),
            version: info.api_version.clone().into(),
            resource: info.resource.clone().into(),
            subresource: info.subresource.clone().into(),
            scope: info.scope(),
            component: COMPONENT,
        }
    }

    /// The labels of a request that is refused before its resource is looked up.
    pub(crate) fn of_refused(method: &Method, info: &RequestInfo) -> RequestLabels {
        RequestLabels {
            verb: RequestVerb::of(method, info, false),
            group: "".into(),
            version: "".into(),
            resource: "".into(),
            subresource: "".into(),
            scope: info.scope(),
            component: COMPONENT,
        }
    }

    /// The values in the order verb, group, version, resource, subresource, scope, component.
    pub(super) fn values(&self) -> [&str; 7] {
        [
            self.verb.as_str(),
            &self.group,
            &self.version,
            &self.resource,
            &self.subresource,
            self.scope,
            self.component,
        ]
    }

    /// The place of the route among those of its resource or subresource.
    #[cfg(test)]
    pub(super) fn place(&self) -> usize {
        route_place(self.verb, self.scope)
    }
}

/// The place of a route among those of its resource or subresource.
pub(crate) fn route_place(verb: RequestVerb, scope: &str) -> usize {
    let scope = match scope {
        "resource" => 0,
        "namespace" => 1,
        _ => 2,
    };
    verb as usize * RequestLabels::SCOPES + scope
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::query::Query;

    #[test]
    fn verbs_are_those_of_the_method_and_the_path() {
        let check = |method: Method, uri: &str, verb: &str, scope: &str| {
            let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
            let info = RequestInfo::parse(&method, path, &Query::parse(query));
            assert_eq!(
                (RequestVerb::of(&method, &info, false).as_str(), info.scope()),
                (verb, scope),
                "{method} {uri}"
            );
        };
        check(Method::GET, "/api/v1/pods", "LIST", "cluster");
        check(Method::GET, "/api/v1/namespaces/a/pods", "LIST", "namespace");
        check(Method::GET, "/api/v1/namespaces/a/pods/b", "GET", "resource");
        check(Method::HEAD, "/api/v1/namespaces/a/pods/b", "GET", "resource");
        check(Method::GET, "/api/v1/pods?watch=1", "WATCH", "cluster");
        check(Method::GET, "/api/v1/watch/pods", "WATCH", "cluster");
        check(Method::POST, "/api/v1/namespaces/a/pods", "POST", "resource");
        check(Method::DELETE, "/api/v1/namespaces/a/pods", "DELETE", "namespace");
        check(Method::GET, "/api/v1/namespaces/a/pods/b/log", "CONNECT", "resource");
        check(Method::PATCH, "/api/v1/namespaces/a/pods/b/status", "PATCH", "resource");
        check(Method::GET, "/healthz", "GET", "");
        check(Method::OPTIONS, "/healthz", "other", "");
    }
}
