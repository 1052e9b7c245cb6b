//! The request scope: the facts of one request that its verb needs, and the steps that verbs share.

use super::{
    api_endpoints::ApiEndpoints,
    encoder::IncludeObject,
    go_names::{go_type_of, go_type_of_kind},
};
use crate::{
    base::{
        body::RequestBody,
        client::Client,
        compression::accepts_gzip,
        deadline::RequestDeadline,
        negotiation::{self, Accepted, Answers, MediaType, Offers, Route, Transform, apply_type},
        query::Query,
        request_info::RequestInfo,
        warning::Warnings,
    },
    filters::{WatchTicket, authorize},
    metrics::{BodyVerb, RequestLabels, RequestVerb, RouteSeries, route_place},
    registry::{Conversions, ManagedWrite, Store, VersionedResource},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use jiff::Timestamp;
use pintle_audit::{AuditContext, Level};
use pintle_feature_gates::{Gate, enabled};
use pintle_go_forms::is_print;
use pintle_machinery::{
    GroupVersion, Status, StatusReason, UserInfo, Value,
    codec::{cbor, json, yaml},
    options::ListOptions,
};
use pintle_registry::{EmptyFields, PatientClient, RequestContext, Routing, SubresourceKind};
use pintle_schema::{SchemaRef, default_by_schema};
use pintle_telemetry::event;
use std::{
    borrow::Cow,
    sync::{Arc, OnceLock, atomic::AtomicU64},
};

/// The length limit of a field manager's name, in bytes.
const MAX_FIELD_MANAGER: usize = 128;

/// One request with its resource, user and options.
pub(super) struct RequestScope<'a> {
    pub(super) server: &'a ApiEndpoints,
    pub(super) resource: &'a Arc<VersionedResource>,
    pub(super) info: &'a RequestInfo,
    pub(super) query: &'a Query,
    pub(super) headers: &'a HeaderMap,
    pub(super) user: &'a UserInfo,
    pub(super) group_version: GroupVersion,
    pub(super) now: Timestamp,
    pub(super) warnings: Warnings,
    /// The empty lists and maps of the body, which the decoded object omits.
    pub(super) empty_fields: EmptyFields,
    /// The seat and registration of a watch in flow control.
    pub(super) watch_ticket: Option<Arc<WatchTicket>>,
    /// The client that awaits the response.
    pub(super) client: Option<Client>,
    /// The request's deadline.
    pub(super) deadline: Option<RequestDeadline>,
    /// The request's audit context, if the policy selects it.
    pub(super) audit: Option<Arc<AuditContext>>,
    /// The time that webhooks took, in nanoseconds.
    pub(super) webhook_time: AtomicU64,
}

impl RequestScope<'_> {
    /// The options of a list or watch.
    ///
    /// # Errors
    /// Those of [`ListOptions::parse`].
    pub(super) fn list_options(&self) -> Result<ListOptions, Status> {
        ListOptions::parse(self.query.pairs(), enabled(Gate::WatchList))
    }

    /// The metrics of the request's route.
    pub(super) fn route_series(&self, method: &Method) -> Arc<RouteSeries> {
        let is_apply = *method == Method::PATCH
            && negotiation::apply_type(self.headers, self.server.media_types).is_some();
        let verb = RequestVerb::of(method, self.info, is_apply);
        let subresources = &self.resource.resource.subresources;
        let subresource = match self.info.subresource.as_str() {
            "" => 0,
            name => subresources.iter().position(|one| one.name == name).map_or(usize::MAX, |at| at + 1),
        };
        let place = route_place(verb, self.info.scope());
        let labels = || RequestLabels::of_resource(verb, self.info);
        let metrics = self.server.metrics.requests();
        self.resource.series.requests.route(metrics, subresources.len(), subresource, labels, place)
    }

    /// Reads the request's body, and records its size.
    ///
    /// # Errors
    /// Those of [`RequestBody::read`].
    pub(super) async fn read_body(&self, body: RequestBody, verb: BodyVerb) -> Result<Bytes, Status> {
        let body = body.read().await?;
        event!("limitedReadBody succeeded", "len" = body.len() as u64);
        let resource = &self.resource.resource.resource;
        let metrics = self.server.metrics.bodies();
        metrics.read(&self.resource.series.bodies, &resource.group, &resource.resource, verb, body.len());
        Ok(body)
    }

    /// The route of the request, if routes check requests before verbs serve them.
    fn route(&self) -> Option<Route> {
        let route = match self.info.verb.as_str() {
            "list" | "watch" => Route::WithStreams,
            _ => Route::Plain,
        };
        (self.resource.resource.model.routing == Routing::Routes).then_some(route)
    }

    /// Whether the route, and not the verb, has refused the format of a patch.
    pub(super) fn refuses_patch(&self, method: &Method, status: &Status) -> bool {
        status.code == 415 && *method == Method::PATCH && self.route().is_some()
    }

    /// Whether the route, and not the verb, has refused the response's form.
    pub(super) fn refuses_form(&self, status: &Status) -> bool {
        let is_routed = |route| negotiation::routed(self.headers, route, self.server.media_types).is_ok();
        status.code == 406 && self.route().is_some_and(|route| !is_routed(route))
    }

    /// The forms of an object, as the resource or one of its subresources has them.
    pub(super) fn object_forms(&self) -> Offers {
        match self.resource.resource.subresource(&self.info.subresource).map(|own| &own.kind) {
            Some(SubresourceKind::Object { has_table: false, .. }) => Offers::Answer,
            _ => Offers::Object,
        }
    }

    /// Negotiates the form of the response.
    ///
    /// # Errors
    /// 406 when the server offers nothing that the client accepts.
    pub(super) fn accepted(&self, offers: Offers) -> Result<Accepted, Status> {
        let resource = &self.resource.resource;
        let answers = Answers {
            offers,
            route: self.route(),
            has_protobuf: resource.model.protobuf,
            media_types: self.server.media_types,
            go_type: &|| match resource.subresource(&self.info.subresource).map(|own| &own.kind) {
                Some(SubresourceKind::Create { kind, .. }) => go_type_of_kind(kind),
                _ => go_type_of(resource, offers),
            },
        };
        negotiation::accepted_of(self.headers, self.query.first("pretty"), answers)
    }

    /// Negotiates the form of the response, and reads the part of the object in table rows.
    ///
    /// # Errors
    /// As [`RequestScope::accepted`].
    pub(super) fn form(&self, offers: Offers) -> Result<(Accepted, IncludeObject), Status> {
        let mut accepted = self.accepted(offers)?;
        let is_table = matches!(accepted.transform, Some((Transform::Table, _)));
        let include_object = match IncludeObject::parse(self.query.first("includeObject")) {
            Ok(include_object) => include_object,
            Err(status) => {
                accepted.refusal = accepted.refusal.or(is_table.then(|| Box::new(status)));
                IncludeObject::Metadata
            }
        };
        Ok((accepted, include_object))
    }

    /// Rejects a read that requests the export of an object, which older versions had.
    ///
    /// # Errors
    /// 400 for any value but `0` and `false`.
    pub(super) fn check_export(&self) -> Result<(), Status> {
        match self.query.first("export") {
            Some(value) if value != "0" && !value.eq_ignore_ascii_case("false") => Err(Status::bad_request(
                "the export parameter, deprecated since v1.14, is no longer supported",
            )),
            _ => Ok(()),
        }
    }

    /// Whether the body of a list may consist of compressed items: the client accepts gzip, and no audit event holds
    /// the list, which would need it uncompressed.
    pub(super) fn may_compress_items(&self) -> bool {
        let is_audited = self.audit.as_ref().is_some_and(|audit| audit.level() >= Level::RequestResponse);
        !is_audited && accepts_gzip(self.headers)
    }

    /// The store of the resource.
    ///
    /// # Errors
    /// 501 for a resource without one.
    pub(super) fn store(&self) -> Result<&Arc<Store>, Status> {
        self.resource.store.as_ref().ok_or_else(not_served)
    }

    /// The resource, for work that outlives the request scope.
    pub(super) fn resource_arc(&self) -> Arc<VersionedResource> {
        self.resource.clone()
    }

    /// The context in which the strategy sees the request.
    pub(super) fn context(&self, dry_run: bool) -> RequestContext<'_> {
        RequestContext {
            user: self.user,
            verb: &self.info.verb,
            namespace: if self.resource.resource.is_namespaced() { &self.info.namespace } else { "" },
            name: &self.info.name,
            subresource: &self.info.subresource,
            group_version: &self.group_version,
            now: self.now,
            dry_run,
            empty_fields: &self.empty_fields,
            registry: &*self.server.stores,
            authorizer: &*self.server.authorizer,
            client: self.client.as_ref().map_or(&PatientClient, |client| client),
        }
    }

    /// Adds the request's object, with its defaults, to the audit event.
    pub(super) fn note_object(&self, object: &Value) {
        let Some(audit) = &self.audit else { return };
        audit.set_request_object(object, || {
            let mut object = self.resource.to_storage(object.clone());
            if let Ok(store) = self.store() {
                store.set_defaults_of_body(&mut object, &self.empty_fields);
            }
            Some(json::encode(&self.resource.from_storage(object), self.resource.schema.get()))
        });
    }

    /// As [`RequestScope::note_object`], for a body of another kind than the resource's.
    pub(super) fn note_body(&self, object: &Value, schema: SchemaRef<'_>) {
        if let Some(audit) = &self.audit {
            audit.set_request_object(object, || {
                let mut object = object.clone();
                default_by_schema(&mut object, schema);
                Some(json::encode(&object, schema))
            });
        }
    }

    /// Adds a patch to the audit event, as JSON.
    pub(super) fn note_patch(&self, body: &[u8]) {
        let Some(audit) = &self.audit else { return };
        match apply_type(self.headers, self.server.media_types) {
            Some(MediaType::Cbor) => audit.set_request_patch(body, || {
                cbor::decode_any_body(body).ok().map(|patch| json::encode_any(&patch))
            }),
            Some(_) => {
                audit.set_request_patch(body, || yaml::to_json(body).ok().map(|converted| converted.json))
            }
            None => audit.set_request_patch(body, || None),
        }
    }

    /// Create-on-update: checks the `create` permission for an update or patch of an object that does not exist.
    ///
    /// # Errors
    /// 403 when the user may not create the object.
    pub(super) async fn check_create(&self) -> Result<(), Status> {
        authorize(&*self.server.authorizer, self.user, "create", self.info).await
    }

    /// Tracks the managed fields of the request, for its field manager or else its user agent.
    pub(super) fn managed_write<'b>(&'b self, field_manager: &'b str) -> ManagedWrite<'b> {
        let manager = match field_manager {
            "" => Cow::Owned(self.user_agent_manager()),
            manager => Cow::Borrowed(manager),
        };
        ManagedWrite {
            stores: &self.server.stores,
            resource: self.resource,
            manager,
            subresource: &self.info.subresource,
            now: self.now,
            empty_fields: self.empty_fields.all(),
            versions: OnceLock::new(),
            conversions: Conversions::default(),
        }
    }

    /// The default field manager.
    pub(super) fn user_agent_manager(&self) -> String {
        manager_of_agent(self.headers.get(header::USER_AGENT).map(HeaderValue::as_bytes).unwrap_or_default())
    }
}

/// The program name in a user agent: its printable characters as far as the length limit has room for them.
fn manager_of_agent(agent: &[u8]) -> String {
    let name = String::from_utf8_lossy(agent.split(|byte| *byte == b'/').next().unwrap_or_default());
    let mut manager = String::new();
    for c in name.chars().filter(|c| is_print(*c)) {
        if manager.len() + c.len_utf8() > MAX_FIELD_MANAGER {
            break;
        }
        manager.push(c);
    }
    manager
}

/// The release that removes a resource, by the text of its deprecation.
pub(super) fn removed_release(deprecation: &str) -> Option<&str> {
    let (_, rest) = deprecation.split_once("unavailable in v")?;
    rest.split_once('+').map(|(release, _)| release)
}

/// The 501 for a declared resource that is not served.
fn not_served() -> Status {
    Status::failure(501, StatusReason::Unknown, "the resource is not served yet")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_manager_is_the_program_of_the_user_agent() {
        let long = "x".repeat(127);
        for (agent, manager) in [
            (&b"kubectl/v1.36 (linux)"[..], "kubectl"),
            (b"", ""),
            (b"/x", ""),
            ("Mozilla/5.0 \u{e9}".as_bytes(), "Mozilla"),
            ("tr\u{e9}s\tbien\u{a0}!/1".as_bytes(), "tr\u{e9}sbien!"),
            (b"a\xffb/1", "a\u{fffd}b"),
            (format!("{long}\u{e9}y/1").as_bytes(), &long),
            (format!("{long}yz").as_bytes(), &format!("{long}y")),
        ] {
            assert_eq!(manager_of_agent(agent), manager, "{}", String::from_utf8_lossy(agent));
        }
    }
}
