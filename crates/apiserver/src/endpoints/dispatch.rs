//! Dispatches requests to their verbs.

use super::{
    action::{Action, action},
    api_endpoints::ApiEndpoints,
    connect, create, create_named, delete, delete_collection, get, list, patch,
    request_scope::RequestScope,
    scale, update, watch,
};
use crate::{
    base::{
        query::Query,
        request::Request,
        request_info::RequestInfo,
        response::{Response, Served, negotiated_failure},
        warning::Warnings,
    },
    registry::VersionedResource,
};
use http::Method;
use jiff::Timestamp;
use pintle_audit::AuditContext;
use pintle_machinery::{GroupVersion, GroupVersionResource, Status, UserInfo};
use pintle_registry::{Backing, Resource};
use std::sync::Arc;

impl ApiEndpoints {
    /// Whether this server serves a resource request: it has the group and version, or that custom resource.
    pub fn serves(&self, info: &RequestInfo) -> bool {
        let (group, version) = (&*info.api_group, &*info.api_version);
        let own = |resource: &Arc<VersionedResource>| {
            let resource = &resource.resource.resource;
            resource.group == group && resource.version == version
        };
        if self.stores.resources().iter().any(own) {
            return true;
        }
        let resource = GroupVersionResource::new(group, version, &*info.resource);
        self.stores.find(&resource).is_some_and(|custom| is_path_of(&custom.resource, info))
    }

    /// Serves a request below `/api/VERSION` or `/apis/GROUP/VERSION`.
    pub async fn serve(
        &self,
        request: Request,
        info: &RequestInfo,
        user: &UserInfo,
        query: &Query,
    ) -> Response {
        let (parts, body) = request.into_parts();
        let gvr = GroupVersionResource::new(&*info.api_group, &*info.api_version, &*info.resource);
        let Some(resource) = self.stores.find(&gvr) else {
            return negotiated_failure(&Status::no_such_resource(), &parts.headers, None);
        };
        let scope = RequestScope {
            server: self,
            resource: &resource,
            info,
            query,
            headers: &parts.headers,
            user,
            group_version: GroupVersion::new(&*info.api_group, &*info.api_version),
            now: Timestamp::now(),
            warnings: Warnings::default(),
            watch_ticket: parts.extensions.get().cloned(),
            deadline: parts.extensions.get().copied(),
            audit: parts.extensions.get::<Arc<AuditContext>>().cloned(),
        };
        scope.note_deprecation();
        scope.warnings.extend(resource.resource.deprecation.clone());
        let action = action(&scope, &parts.method);
        let is_served = action.is_ok();
        let result = match action {
            Err(status) => Err(status),
            Ok(_)
                if query.first("export").is_some_and(|value| !value.is_empty())
                    && parts.method == Method::GET =>
            {
                Err(Status::bad_request(
                    "the export parameter, deprecated since v1.14, is no longer supported",
                ))
            }
            Ok(action) => match action {
                Action::Get => get::get(&scope).await,
                Action::List => list::list(&scope).await,
                Action::Watch => watch::watch(&scope).await,
                Action::Create => match &resource.resource.backing {
                    Backing::Creater(creater) => {
                        let kind = resource.resource.group_version_kind();
                        create_named::serve(&scope, body, &kind, &[], &**creater).await
                    }
                    Backing::Stored | Backing::Unserved => create::create(&scope, body).await,
                },
                Action::Update => update::update(&scope, body, "").await,
                Action::Patch => patch::patch(&scope, body, "").await,
                Action::Delete => delete::delete(&scope, body).await,
                Action::DeleteCollection => delete_collection::delete_collection(&scope, body).await,
                Action::GetSubresource => get::get(&scope).await,
                Action::UpdateSubresource => update::update(&scope, body, &info.subresource).await,
                Action::PatchSubresource => patch::patch(&scope, body, &info.subresource).await,
                Action::GetScale => scale::get(&scope).await,
                Action::UpdateScale => scale::update(&scope, body).await,
                Action::PatchScale => scale::patch(&scope, body).await,
                Action::CreateNamed => create_named::create(&scope, body).await,
                Action::Connect => connect::connect(&scope).await,
            },
        };
        let mut response = match result {
            Ok(response) => response,
            Err(status) => negotiated_failure(&status, scope.headers, query.first("pretty")),
        };
        scope.warnings.write_to(response.headers_mut());
        if is_served {
            response.extensions_mut().insert(Served);
        }
        response
    }
}

/// Whether a custom resource has such a path: one with a namespace only if it is namespaced, and one without, for
/// namespaced resources, only for list and watch.
fn is_path_of(resource: &Resource, info: &RequestInfo) -> bool {
    match (resource.is_namespaced(), info.namespace.is_empty()) {
        (false, in_no_namespace) => in_no_namespace,
        (true, true) => matches!(&*info.verb, "list" | "watch"),
        (true, false) => true,
    }
}
