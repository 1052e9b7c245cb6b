//! The API endpoints: one handler per verb, none of which knows a kind by name.

mod apply;
mod create;
mod decode;
mod delete;
mod delete_collection;
pub mod encoding;
mod get;
mod list;
mod list_body;
mod patch;
mod patched_text;
mod scale;
mod selection;
mod subresource;
mod unrestorable;
mod update;
mod watch;

use self::decode::internal_package;
use crate::{
    deadline::RequestDeadline,
    filters::{WatchTicket, authorize},
    negotiation::{self, Accepted, Answers, Offers},
    query::Query,
    registry::{Conversions, ManagedWrite, Store, Stores, VersionedResource},
    request::Request,
    request_info::RequestInfo,
    response::{Response, Served, negotiated_failure},
    warning::Warnings,
};
use http::{HeaderMap, Method, header};
use jiff::Timestamp;
use pintle_admission::{AdmissionChain, AdmissionRequest, Operation};
use pintle_audit::AuditContext;
use pintle_auth::authz::Authorizer;
use pintle_machinery::{
    GroupVersion, GroupVersionKind, GroupVersionResource, Status, StatusReason, UserInfo, Value,
    codec::{json, yaml},
};
use pintle_registry::{Backing, RequestContext, Resource, SubresourceKind, Verb};
use pintle_schema::{SchemaRef, default_by_schema};
use std::{
    borrow::Cow,
    sync::{Arc, OnceLock},
};

/// Serves the resources of one server.
pub struct ApiEndpoints {
    /// The resources and their stores.
    pub stores: Arc<Stores>,
    /// The admission chain of every write.
    pub admission: AdmissionChain,
    /// Authorizes what a request does beyond its verb, such as create-on-update.
    pub authorizer: Arc<dyn Authorizer>,
    /// Whether unreadable objects can be deleted (feature gate `AllowUnsafeMalformedObjectDeletion`).
    pub unsafe_deletes: bool,
    /// Becomes true when open watches have to end.
    pub shutdown: tokio::sync::watch::Receiver<bool>,
}

/// The length limit of a field manager's name, in bytes.
const MAX_FIELD_MANAGER: usize = 128;

/// The request scope: one request with its resource, user and options.
pub(crate) struct Exchange<'a> {
    server: &'a ApiEndpoints,
    resource: &'a Arc<VersionedResource>,
    info: &'a RequestInfo,
    query: &'a Query,
    headers: &'a HeaderMap,
    user: &'a UserInfo,
    group_version: GroupVersion,
    now: Timestamp,
    warnings: Warnings,
    /// The seat and registration of a watch in flow control.
    watch_ticket: Option<Arc<WatchTicket>>,
    /// The request's deadline.
    deadline: Option<RequestDeadline>,
    /// The request's audit context, if the policy selects it.
    audit: Option<Arc<AuditContext>>,
}

impl Exchange<'_> {
    fn accepted(&self, offers: Offers) -> Result<Accepted, Status> {
        let is_custom = self.resource.schema.is_custom();
        let go_type = || {
            let resource = &self.resource.resource;
            let kind = resource.group_version_kind();
            match (is_custom, offers) {
                (true, Offers::List) => "unstructured.UnstructuredList".to_owned(),
                (true, _) => "unstructured.Unstructured".to_owned(),
                (false, Offers::List) => format!("{}.{}", internal_package(&kind.group), resource.list_kind),
                (false, _) => format!("{}.{}", internal_package(&kind.group), kind.kind),
            }
        };
        let answers = Answers { offers, is_custom, go_type: &go_type };
        negotiation::accepted_of(self.headers, self.query.first("pretty"), answers)
    }

    fn store(&self) -> Result<&Arc<Store>, Status> {
        self.resource.store.as_ref().ok_or_else(not_served)
    }

    fn resource_arc(&self) -> Arc<VersionedResource> {
        self.resource.clone()
    }

    fn context(&self, dry_run: bool) -> RequestContext<'_> {
        RequestContext {
            user: self.user,
            namespace: if self.resource.resource.is_namespaced() { &self.info.namespace } else { "" },
            name: &self.info.name,
            subresource: &self.info.subresource,
            group_version: &self.group_version,
            now: self.now,
            dry_run,
            registry: &*self.server.stores,
            authorizer: &*self.server.authorizer,
        }
    }

    /// Adds the request's object, with its defaults, to the audit event.
    fn note_object(&self, object: &Value) {
        let Some(audit) = &self.audit else { return };
        audit.set_request_object(object, || {
            let mut object = self.resource.to_storage(object.clone());
            if let Ok(store) = self.store() {
                store.set_defaults(&mut object);
            }
            Some(json::encode(&self.resource.from_storage(object), self.resource.schema.get()))
        });
    }

    /// As [`Exchange::note_object`], for a body of another kind than the resource's.
    fn note_body(&self, object: &Value, schema: SchemaRef<'_>) {
        if let Some(audit) = &self.audit {
            audit.set_request_object(object, || {
                let mut object = object.clone();
                default_by_schema(&mut object, schema);
                Some(json::encode(&object, schema))
            });
        }
    }

    /// Adds a patch to the audit event, as JSON.
    fn note_patch(&self, body: &[u8]) {
        let Some(audit) = &self.audit else { return };
        match media_type(self.headers) == apply::APPLY_PATCH {
            true => audit
                .set_request_patch(&yaml::to_json(body).map(|converted| converted.json).unwrap_or_default()),
            false => audit.set_request_patch(body),
        }
    }

    /// Adds the deprecation of the resource's version to the audit event, and the release that removes it.
    fn note_deprecation(&self) {
        let (Some(audit), Some(text)) = (&self.audit, &self.resource.resource.deprecation) else { return };
        audit.annotate("k8s.io/deprecated", "true");
        let removed = text.split_once("unavailable in v").and_then(|(_, rest)| rest.split_once('+'));
        if let Some((release, _)) = removed {
            audit.annotate("k8s.io/removed-release", release.to_owned());
        }
    }

    /// Create-on-update: checks the `create` permission for an update or patch of an object that does not exist.
    ///
    /// # Errors
    /// 403 when the user may not create the object.
    async fn check_create(&self) -> Result<(), Status> {
        authorize(&*self.server.authorizer, self.user, "create", self.info).await
    }

    /// Tracks the managed fields of the request, for its field manager or else its user agent.
    fn managed_write<'b>(&'b self, field_manager: &'b str) -> ManagedWrite<'b> {
        let manager = if field_manager.is_empty() { self.user_agent_manager() } else { field_manager };
        ManagedWrite {
            stores: &self.server.stores,
            resource: self.resource,
            manager,
            subresource: &self.info.subresource,
            now: self.now,
            versions: OnceLock::new(),
            conversions: Conversions::default(),
        }
    }

    /// The program name in the user agent, the default field manager, truncated to the length limit.
    fn user_agent_manager(&self) -> &str {
        let agent = self.headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok());
        let name = agent.unwrap_or_default().split('/').next().unwrap_or_default();
        name.get(..MAX_FIELD_MANAGER).unwrap_or(name)
    }

    fn admission<'b>(
        &'b self,
        operation: Operation,
        kind: &'b GroupVersionKind,
        context: &'b RequestContext<'b>,
        object: Cow<'b, Value>,
        old_object: Option<&'b Value>,
    ) -> AdmissionRequest<'b> {
        AdmissionRequest {
            operation,
            resource: &self.resource.resource.resource,
            subresource: &self.info.subresource,
            kind,
            namespace: &self.info.namespace,
            name: &self.info.name,
            object,
            old_object,
            options: Value::Null,
            context,
            lister: &*self.server.stores,
            warnings: Vec::new(),
        }
    }

    async fn admit(
        &self,
        operation: Operation,
        kind: &GroupVersionKind,
        context: &RequestContext<'_>,
        object: Value,
        old_object: Option<&Value>,
    ) -> Result<Value, Status> {
        let mut request = self.admission(operation, kind, context, Cow::Owned(object), old_object);
        self.server.admission.admit(&mut request).await?;
        self.warnings.extend(std::mem::take(&mut request.warnings));
        Ok(request.object.into_owned())
    }

    async fn validate(
        &self,
        operation: Operation,
        kind: &GroupVersionKind,
        context: &RequestContext<'_>,
        object: &Value,
        old_object: Option<&Value>,
    ) -> Result<(), Status> {
        let mut request = self.admission(operation, kind, context, Cow::Borrowed(object), old_object);
        self.server.admission.validate(&mut request).await?;
        self.warnings.extend(std::mem::take(&mut request.warnings));
        Ok(())
    }
}

/// The 405 for a method that a path does not have.
pub fn method_not_allowed() -> Status {
    let mut status = Status::failure(
        405,
        StatusReason::MethodNotAllowed,
        "the server does not allow this method on the requested resource",
    );
    status.details = Some(Default::default());
    status
}

/// The 501 for a declared resource that is not served.
fn not_served() -> Status {
    Status::failure(501, StatusReason::Unknown, "the resource is not served yet")
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

/// The action that a path and a method request.
enum Action {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
    GetPart,
    UpdatePart,
    PatchPart,
    GetScale,
    UpdateScale,
    PatchScale,
    CreateBelow,
    Connect,
}

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
        let Some(resource) = self.stores.find(&gvr) else { return self.no_such_resource(&parts.headers) };
        let exchange = Exchange {
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
        exchange.note_deprecation();
        exchange.warnings.extend(resource.resource.deprecation.clone());
        let action = action(&exchange, &parts.method);
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
                Action::Get => get::get(&exchange).await,
                Action::List => list::list(&exchange).await,
                Action::Watch => watch::watch(&exchange).await,
                Action::Create => match &resource.resource.backing {
                    Backing::Creater(creater) => {
                        let kind = resource.resource.group_version_kind();
                        subresource::serve(&exchange, body, &kind, &[], &**creater).await
                    }
                    Backing::Stored | Backing::Unserved => create::create(&exchange, body).await,
                },
                Action::Update => update::update(&exchange, body, "").await,
                Action::Patch => patch::patch(&exchange, body, "").await,
                Action::Delete => delete::delete(&exchange, body).await,
                Action::DeleteCollection => delete_collection::delete_collection(&exchange, body).await,
                Action::GetPart => get::get(&exchange).await,
                Action::UpdatePart => update::update(&exchange, body, &info.subresource).await,
                Action::PatchPart => patch::patch(&exchange, body, &info.subresource).await,
                Action::GetScale => scale::get(&exchange).await,
                Action::UpdateScale => scale::update(&exchange, body).await,
                Action::PatchScale => scale::patch(&exchange, body).await,
                Action::CreateBelow => subresource::create(&exchange, body).await,
                Action::Connect => subresource::connect(&exchange).await,
            },
        };
        let mut response = match result {
            Ok(response) => response,
            Err(status) => self.failure(&status, &exchange),
        };
        exchange.warnings.write_to(response.headers_mut());
        if is_served {
            response.extensions_mut().insert(Served);
        }
        response
    }

    fn failure(&self, status: &Status, exchange: &Exchange<'_>) -> Response {
        negotiated_failure(status, exchange.headers, exchange.query.first("pretty"))
    }

    fn no_such_resource(&self, headers: &HeaderMap) -> Response {
        negotiated_failure(&Status::no_such_resource(), headers, None)
    }
}

/// Selects the action on a custom resource by the verb alone: `name` may be set without need, and absent where it is
/// required.
fn custom_action(exchange: &Exchange<'_>) -> Result<Action, Status> {
    let info = exchange.info;
    let resource = &exchange.resource.resource;
    let unsupported = || Status::method_not_supported(&resource.group_resource(), &info.verb);
    let action = match info.subresource.as_str() {
        "" => match info.verb.as_str() {
            "get" => Action::Get,
            "list" => return Ok(Action::List),
            "watch" => return Ok(Action::Watch),
            "create" => return Ok(Action::Create),
            "update" => Action::Update,
            "patch" => Action::Patch,
            "delete" => Action::Delete,
            "deletecollection" => return Ok(Action::DeleteCollection),
            _ => return Err(unsupported()),
        },
        name => {
            let subresource = resource.subresource(name);
            let missing = || Status::not_found(&resource.group_resource(), &info.name);
            match (&subresource.ok_or_else(missing)?.kind, info.verb.as_str()) {
                (SubresourceKind::Scale(_), "get") => Action::GetScale,
                (SubresourceKind::Scale(_), "update") => Action::UpdateScale,
                (SubresourceKind::Scale(_), "patch") => Action::PatchScale,
                (_, "get") => Action::GetPart,
                (_, "update") => Action::UpdatePart,
                (_, "patch") => Action::PatchPart,
                _ => return Err(unsupported()),
            }
        }
    };
    match info.name.is_empty() {
        true => Err(Status::bad_request("name must be provided")),
        false => Ok(action),
    }
}

/// Selects the action: 404 for paths that do not exist, 405 for methods that a path does not have.
fn action(exchange: &Exchange<'_>, method: &Method) -> Result<Action, Status> {
    if exchange.resource.schema.is_custom() {
        return custom_action(exchange);
    }
    let info = exchange.info;
    let resource = &exchange.resource.resource;
    let in_namespace = !info.namespace.is_empty() && info.resource != "namespaces";
    if in_namespace && !resource.is_namespaced() {
        return Err(Status::no_such_resource());
    }
    // A path below `/watch` can only be watched: authorization has checked the verb `watch`.
    if info.verb == "watch" && *method != Method::GET {
        return Err(method_not_allowed());
    }
    // Authorization has checked the verb `proxy` of the path: the method must not be served instead.
    if info.verb == "proxy" {
        return Err(Status::no_such_resource());
    }
    if info.verb == "watch" && !info.subresource.is_empty() {
        return Err(Status::no_such_resource());
    }
    let has = |verb: Verb| match resource.verbs.contains(&verb) {
        true => Ok(()),
        false => Err(method_not_allowed()),
    };
    if !info.subresource.is_empty() {
        if resource.is_namespaced() && !in_namespace {
            return Err(Status::no_such_resource());
        }
        let subresource = resource.subresource(&info.subresource).ok_or_else(Status::no_such_resource)?;
        if !info.rest.is_empty() && !matches!(subresource.kind, SubresourceKind::Connect { .. }) {
            return Err(Status::no_such_resource());
        }
        let verb = verb_of(method);
        return match &subresource.kind {
            SubresourceKind::Part { verbs, .. } => match verb.filter(|verb| verbs.contains(verb)) {
                Some(Verb::Get) => Ok(Action::GetPart),
                Some(Verb::Update) => Ok(Action::UpdatePart),
                Some(Verb::Patch) => Ok(Action::PatchPart),
                _ => Err(method_not_allowed()),
            },
            SubresourceKind::Scale(_) => match verb {
                Some(Verb::Get) => Ok(Action::GetScale),
                Some(Verb::Update) => Ok(Action::UpdateScale),
                Some(Verb::Patch) => Ok(Action::PatchScale),
                _ => Err(method_not_allowed()),
            },
            SubresourceKind::Create { .. } => match verb {
                Some(Verb::Create) => Ok(Action::CreateBelow),
                _ => Err(method_not_allowed()),
            },
            SubresourceKind::Connect { verbs, .. } => match verb.filter(|verb| verbs.contains(verb)) {
                Some(_) => Ok(Action::Connect),
                None => Err(method_not_allowed()),
            },
        };
    }
    if info.is_named {
        if resource.is_namespaced() && !in_namespace {
            return Err(Status::no_such_resource());
        }
        let named = [Verb::Get, Verb::Update, Verb::Patch, Verb::Delete];
        if !named.iter().any(|verb| resource.verbs.contains(verb)) {
            return Err(Status::no_such_resource());
        }
        return match *method {
            Method::GET if info.verb == "watch" => has(Verb::Watch).map(|()| Action::Watch),
            Method::GET => has(Verb::Get).map(|()| Action::Get),
            Method::PUT => has(Verb::Update).map(|()| Action::Update),
            Method::PATCH => has(Verb::Patch).map(|()| Action::Patch),
            Method::DELETE => has(Verb::Delete).map(|()| Action::Delete),
            _ => Err(method_not_allowed()),
        };
    }
    let everywhere = resource.is_namespaced() && !in_namespace;
    match *method {
        Method::GET if info.verb == "watch" => has(Verb::Watch).map(|()| Action::Watch),
        Method::GET => has(Verb::List).map(|()| Action::List),
        Method::POST if !everywhere => has(Verb::Create).map(|()| Action::Create),
        Method::DELETE if !everywhere => has(Verb::DeleteCollection).map(|()| Action::DeleteCollection),
        _ => Err(method_not_allowed()),
    }
}

fn verb_of(method: &Method) -> Option<Verb> {
    match *method {
        Method::GET => Some(Verb::Get),
        Method::PUT => Some(Verb::Update),
        Method::PATCH => Some(Verb::Patch),
        Method::POST => Some(Verb::Create),
        Method::DELETE => Some(Verb::Delete),
        _ => None,
    }
}

/// The media type of the request's `Content-Type`, without parameters.
fn media_type(headers: &HeaderMap) -> &str {
    let header = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    header.split(';').next().unwrap_or_default().trim()
}
