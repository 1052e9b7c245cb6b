//! Dispatches requests to their verbs.

use super::{
    action::{Action, action},
    api_endpoints::ApiEndpoints,
    computed, connect, create, create_named, delete, delete_collection, get, list, patch,
    request_scope::{RequestScope, removed_release},
    responder::Responder,
    scale, update, watch,
    write_limit::WriteLimit,
};
use crate::{
    base::{
        body::RequestBody,
        peer::source_ips,
        query::Query,
        request::Request,
        request_info::RequestInfo,
        response::{Response, negotiated_failure},
        route_slot::RouteSlot,
        warning::Warnings,
    },
    filters::Arrival,
    registry::VersionedResource,
};
use http::{header, request::Parts};
use jiff::Timestamp;
use pintle_audit::AuditContext;
use pintle_machinery::{GroupVersion, Status, UserInfo};
use pintle_registry::{Backing, BoxFuture, EmptyFields, Resource, Routing, Verb};
use pintle_telemetry::TARGET;
use std::sync::{Arc, atomic::AtomicU64};

use tracing::{Instrument, Span, field};

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
        self.stores
            .find(&info.group_version_resource())
            .is_some_and(|custom| is_path_of(&custom.resource, info))
    }

    /// Serves a request below `/api/VERSION` or `/apis/GROUP/VERSION`. It goes on after the limit of a write.
    pub(crate) async fn serve(
        &self,
        request: Request,
        info: &RequestInfo,
        user: &UserInfo,
        query: &Query,
        limit: Option<WriteLimit>,
    ) -> Response {
        let (parts, body) = request.into_parts();
        let gvr = info.group_version_resource();
        let Some(resource) = self.stores.find(&gvr) else {
            return negotiated_failure(&Status::no_such_resource(), &parts.headers, query.first("pretty"));
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
            empty_fields: EmptyFields::default(),
            watch_ticket: parts.extensions.get().cloned(),
            client: parts.extensions.get().cloned(),
            deadline: parts.extensions.get().copied(),
            audit: parts.extensions.get::<Arc<AuditContext>>().cloned(),
            webhook_time: AtomicU64::default(),
        };
        let action = action(&scope, &parts.method);
        let is_served = action.is_ok();
        let is_stream = matches!(action, Ok(Action::Watch | Action::Connect));
        // A method that no route has gets no warning; a request without a name has a route.
        let is_nameless = action.as_ref().is_err_and(|status| status.code == 400);
        let is_routed = is_served || is_nameless || resource.resource.model.routing == Routing::Verbs;
        scope.warnings.extend(resource.resource.deprecation.clone().filter(|_| is_routed));
        if is_served && let Some(route) = parts.extensions.get::<RouteSlot>() {
            let series = scope.route_series(&parts.method);
            if let Some(text) = &resource.resource.deprecation {
                self.metrics.requests().requested_deprecated(series.labels(), removed_release(text));
            }
            route.found(series);
        }
        let responder = Responder { scope: &scope, method: &parts.method, is_served, is_routed, is_stream };
        match action {
            Err(status) => responder.respond(Err(status)),
            Ok(action) => {
                let span = span(&action, &parts, &scope);
                // Boxed, as the verbs' futures differ much in size.
                let answer: BoxFuture<'_, Result<Response, Status>> = match action {
                    Action::Get | Action::GetSubresource => Box::pin(get_any(&scope)),
                    Action::List => Box::pin(list_any(&scope)),
                    Action::Watch => Box::pin(watch_any(&scope)),
                    Action::Create => Box::pin(create_or_review(&scope, body)),
                    Action::Update => Box::pin(update::update(&scope, body, "")),
                    Action::Patch => Box::pin(patch::patch(&scope, body, "")),
                    Action::Delete => Box::pin(delete::delete(&scope, body)),
                    Action::DeleteCollection => Box::pin(delete_collection::delete_collection(&scope, body)),
                    Action::UpdateSubresource => Box::pin(update::update(&scope, body, &info.subresource)),
                    Action::PatchSubresource => Box::pin(patch::patch(&scope, body, &info.subresource)),
                    Action::GetScale => Box::pin(scale::get(&scope)),
                    Action::UpdateScale => Box::pin(scale::update(&scope, body)),
                    Action::PatchScale => Box::pin(scale::patch(&scope, body)),
                    Action::CreateNamed => Box::pin(create_named::create(&scope, body)),
                    Action::Connect => {
                        let request = Request::from_parts(parts.clone(), body);
                        Box::pin(connect::connect(&scope, request))
                    }
                };
                let answer = answer.instrument(span);
                responder.respond(match limit {
                    None => answer.await,
                    Some(limit) => limit.result(answer, |status| responder.respond(Err(status))).await,
                })
            }
        }
    }
}

/// The span of a verb.
fn span(action: &Action, parts: &Parts, scope: &RequestScope<'_>) -> Span {
    let name = match action {
        Action::Get | Action::GetSubresource | Action::GetScale => "Get",
        Action::List => "List",
        Action::Watch => "WatchServer.HandleHTTP",
        Action::Create | Action::CreateNamed => "Create",
        Action::Update | Action::UpdateSubresource | Action::UpdateScale => "Update",
        Action::Patch | Action::PatchSubresource | Action::PatchScale => "Patch",
        Action::Delete | Action::DeleteCollection => "Delete",
        Action::Connect => "Connect",
    };
    let RequestInfo { api_group, api_version, namespace, resource, subresource, name: object, .. } =
        scope.info;
    let text = |name| parts.headers.get(name).and_then(|value| value.to_str().ok());
    let arrival = parts.extensions.get::<Arrival>();
    let client = || source_ips(&parts.headers, parts.extensions.get()).into_iter().next();
    tracing::info_span!(
        target: TARGET,
        "verb",
        otel.name = name,
        accept = text(header::ACCEPT).unwrap_or_default(),
        "audit-id" = arrival.and_then(|arrival| arrival.audit_id.to_str().ok()),
        client = client().map(field::display),
        "api-group" = api_group.as_str(),
        "api-version" = api_version.as_str(),
        name = object.as_str(),
        subresource = subresource.as_str(),
        namespace = namespace.as_str(),
        protocol = ?parts.version,
        resource = resource.as_str(),
        scope = scope.info.scope(),
        url = parts.uri.path(),
        "user-agent" = text(header::USER_AGENT).unwrap_or("unknown"),
        verb = parts.method.as_str(),
    )
}

/// Creates an object, or answers for a resource without storage, such as a review.
async fn create_or_review(scope: &RequestScope<'_>, body: RequestBody) -> Result<Response, Status> {
    match &scope.resource.resource.backing {
        Backing::Creater(creater) => {
            let kind = scope.resource.resource.group_version_kind();
            create_named::serve(scope, body, &kind, &[], &**creater).await
        }
        Backing::Stored | Backing::Computed(_) => create::create(scope, body).await,
    }
}

/// Reads an object, stored or computed.
async fn get_any(scope: &RequestScope<'_>) -> Result<Response, Status> {
    match &scope.resource.resource.backing {
        Backing::Computed(objects) => computed::get(scope, &**objects).await,
        Backing::Stored | Backing::Creater(_) => get::get(scope).await,
    }
}

/// Watches objects, if they are stored.
async fn watch_any(scope: &RequestScope<'_>) -> Result<Response, Status> {
    let resource = &scope.resource.resource;
    match resource.verbs.contains(&Verb::Watch) {
        true => watch::watch(scope).await,
        false => computed::refuse_watch(scope),
    }
}

/// Lists objects, stored or computed.
async fn list_any(scope: &RequestScope<'_>) -> Result<Response, Status> {
    match &scope.resource.resource.backing {
        Backing::Computed(objects) => computed::list(scope, &**objects).await,
        Backing::Stored | Backing::Creater(_) => list::list(scope).await,
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
