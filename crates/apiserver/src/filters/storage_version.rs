//! Refuses writes of resources whose storage version the other servers of the cluster do not know yet.
//!
//! Reads pass, and those writes without which storage versions cannot be published: storage versions themselves, and the
//! leases by which servers know each other, with their namespace
//! (<https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/2339-storageversion-api-for-ha-api-servers>).

use super::filter::{Filter, Rest};
use crate::base::{
    request::{Request, info_of, query_of, user_of},
    request_info::RequestInfo,
    response::{Response, negotiated_failure},
};
use pintle_machinery::{
    Status, UserInfo,
    user::{APISERVER_USER, SYSTEM_MASTERS},
};
use pintle_registry::{PendingUpdate, StorageVersionManager};
use std::sync::Arc;

const SYSTEM_NAMESPACE: &str = "kube-system";

pub(super) struct StorageVersionPrecondition {
    pub(super) manager: Arc<StorageVersionManager>,
}

impl Filter for StorageVersionPrecondition {
    async fn handle(&self, request: Request, next: &Rest) -> Response {
        if self.manager.is_completed() {
            return next.call(request).await;
        }
        let info = info_of(&request);
        if passes(&info, &user_of(&request)) {
            return next.call(request).await;
        }
        let resource = info.group_resource();
        let Some(PendingUpdate { last_error }) = self.manager.pending_update(&resource) else {
            return next.call(request).await;
        };
        let status = Status::service_unavailable(format!(
            "wait for storage version registration to complete for resource: {resource}, last seen error: {}",
            last_error.as_deref().unwrap_or("<nil>")
        ));
        negotiated_failure(&status, request.headers(), query_of(&request).first("pretty"))
    }
}

/// Whether a request passes, whatever the state of its resource.
fn passes(info: &RequestInfo, user: &UserInfo) -> bool {
    if !info.is_resource_request || matches!(info.verb.as_str(), "get" | "list" | "watch") {
        return true;
    }
    match (info.api_group.as_str(), info.resource.as_str()) {
        ("internal.apiserver.k8s.io", "storageversions") => true,
        ("coordination.k8s.io", "leases") => info.namespace == SYSTEM_NAMESPACE,
        ("", "namespaces") => {
            info.verb == "create" && user.name == APISERVER_USER && user.is_member_of(SYSTEM_MASTERS)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::query::Query;
    use http::Method;

    #[test]
    fn reads_and_what_the_publication_needs_pass() {
        let check = |request: &str, user: &str, expected: bool| {
            let (method, path) = request.split_once(' ').unwrap();
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            let info = RequestInfo::parse(&method, path, &Query::parse(""));
            let groups = vec![SYSTEM_MASTERS.to_owned()];
            let user = UserInfo { name: user.to_owned(), groups, ..UserInfo::default() };
            assert_eq!(passes(&info, &user), expected, "{request}");
        };
        check("GET /api/v1/pods", "admin", true);
        check("GET /api/v1/watch/pods", "admin", true);
        check("POST /version", "admin", true);
        check("POST /api/v1/namespaces/default/pods", "admin", false);
        check("DELETE /api/v1/namespaces/default/pods", "admin", false);
        check("PUT /apis/internal.apiserver.k8s.io/v1alpha1/storageversions/core.pods/status", "admin", true);
        check("POST /api/v1/namespaces", "admin", false);
        check("POST /api/v1/namespaces", APISERVER_USER, true);
        check("DELETE /api/v1/namespaces/a", APISERVER_USER, false);
        check("PATCH /apis/coordination.k8s.io/v1/namespaces/kube-system/leases/a", "admin", true);
        check("PATCH /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/a", "admin", false);
    }

    #[test]
    fn a_member_of_no_privileged_group_creates_no_namespace() {
        let info = RequestInfo::parse(&Method::POST, "/api/v1/namespaces", &Query::parse(""));
        let user = UserInfo { name: APISERVER_USER.to_owned(), ..UserInfo::default() };
        assert!(!passes(&info, &user));
    }
}
