//! The `token` subresource: issues tokens for a service account
//! (<https://kubernetes.io/docs/reference/kubernetes-api/authentication-resources/token-request-v1/>).

use crate::{field_checks::texts, rules};
use jiff::{Timestamp, ToSpan};
use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, GroupKind, GroupResource, GroupVersion, Status, StatusReason, Value,
    ValueExt, json,
    meta::{self, ObjectMeta},
};
use pintle_registry::{BoxFuture, NamedCreater, Remarks, RequestContext};
use pintle_service_account::{Binding, Reference, TokenIssuer, TokenSpec, credential_id_of};
use std::sync::Arc;

const KIND: &str = "TokenRequest";
const GROUP: &str = "authentication.k8s.io";
/// The gate by which the uid of a request is a precondition.
const UID_VALIDATION: Gate = Gate::TokenRequestServiceAccountUIDValidation;
/// The default lifetime of a token, in seconds.
const DEFAULT_SECONDS: i64 = 60 * 60;
/// The minimum lifetime of a token, in seconds.
const MIN_SECONDS: i64 = 10 * 60;
/// The maximum lifetime of a token, in seconds.
const MAX_SECONDS: i64 = 1 << 32;

/// Creates tokens for requests to the `token` subresource.
pub(super) struct TokenCreater(pub(super) Arc<TokenIssuer>);

impl NamedCreater for TokenCreater {
    fn prepare<'a>(
        &'a self,
        context: &'a RequestContext<'a>,
        body: &'a mut Value,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(self.complete(context, body))
    }

    fn create<'a>(
        &'a self,
        context: &'a RequestContext<'a>,
        body: Value,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(self.issue(context, body))
    }

    fn remarks<'a>(
        &'a self,
        context: &'a RequestContext<'a>,
        body: &'a Value,
    ) -> BoxFuture<'a, Result<Remarks, Status>> {
        Box::pin(async move {
            // Otherwise such a body was refused.
            match enabled(UID_VALIDATION) {
                true => Ok(Remarks::default()),
                false => {
                    let mismatch = uid_mismatch(body, &account(context).await?);
                    Ok(mismatch.map(mismatch_remarks).unwrap_or_default())
                }
            }
        })
    }

    fn set_defaults(&self, body: &mut Value) {
        body.set_default("spec.expirationSeconds", DEFAULT_SECONDS);
    }

    fn warnings(&self, _: &RequestContext<'_>, body: &Value) -> Vec<String> {
        let requested = body.i64_at("spec.expirationSeconds").unwrap_or_default();
        let shortened = self.0.max_expiration_seconds.filter(|max| requested > *max);
        let warning = shortened
            .map(|max| format!("requested expiration of {requested} seconds shortened to {max} seconds"));
        warning.into_iter().collect()
    }

    fn audit_annotations(&self, answer: &Value) -> Vec<(&'static str, String)> {
        let id = credential_id_of(answer.str_at("status.token"));
        id.map(|id| ("authentication.kubernetes.io/issued-credential-id", id)).into_iter().collect()
    }

    /// Keeps the request's uid, which is a precondition on the account.
    fn keeps_system_metadata(&self) -> bool {
        true
    }
}

impl TokenCreater {
    /// Checks the request against the account and adds what it leaves out.
    async fn complete(&self, context: &RequestContext<'_>, request: &mut Value) -> Result<(), Status> {
        let (name, namespace) = (context.name, context.namespace);
        check_place(request, "name", name, name)?;
        check_place(request, "namespace", namespace, name)?;
        let account = account(context).await?;
        if let Some(why) = uid_mismatch(request, &account).filter(|_| enabled(UID_VALIDATION)) {
            return Err(Status::conflict(&GroupResource::new(GROUP, KIND), name, &why));
        }
        if request.items_at("spec.audiences").is_empty() {
            request.set("spec.audiences", json!(self.0.audiences));
        }
        request.set("metadata.name", name);
        request.set("metadata.namespace", namespace);
        if request.uid().is_empty() {
            request.set("metadata.uid", account.uid());
        }
        request.set("metadata.creationTimestamp", meta::format_time(context.now));
        request.remove_at("status");
        let requested = request.i64_at("spec.expirationSeconds").unwrap_or_default();
        let errors = validate(requested);
        if !errors.is_empty() {
            return Err(Status::invalid(&GroupKind::new(GROUP, KIND), "", &errors));
        }
        Ok(())
    }

    /// Issues the token of a complete request.
    async fn issue(&self, context: &RequestContext<'_>, mut request: Value) -> Result<Value, Status> {
        let issuer = &*self.0;
        let namespace = context.namespace;
        let account = reference(&account(context).await?);
        let audiences: Vec<String> = texts(request.items_at("spec.audiences")).map(str::to_owned).collect();
        let requested = request.i64_at("spec.expirationSeconds").unwrap_or_default();
        let binding = binding(context, request.at("spec.boundObjectRef").unwrap_or(&Value::Null)).await?;
        let expiration = issuer.expiration(requested, &binding, &audiences);
        let spec = TokenSpec {
            namespace,
            service_account: &account,
            binding: &binding,
            audiences: &audiences,
            expiration,
            now: context.now,
        };
        let issued = issuer.issue(&spec).await;
        let issued =
            issued.map_err(|error| Status::internal_error(format!("failed to generate token: {error}")))?;
        request.set("spec.expirationSeconds", expiration.reported);
        request.set("status.token", issued.token);
        let expires: Timestamp =
            context.now.saturating_add(expiration.reported.seconds()).unwrap_or(Timestamp::MAX);
        request.set("status.expirationTimestamp", meta::format_time(expires));
        Ok(request)
    }
}

/// The reason why a request is not for this account, if it names the uid of another one.
fn uid_mismatch(request: &Value, account: &Value) -> Option<String> {
    let (wanted, uid) = (request.uid(), account.uid());
    (!wanted.is_empty() && wanted != uid).then(|| {
        format!(
            "the UID in the token request ({wanted}) does not match the UID of the service account ({uid})"
        )
    })
}

/// The remarks on a request that is granted in spite of the uid.
fn mismatch_remarks(mismatch: String) -> Remarks {
    let warning = format!(
        "{mismatch} but {UID_VALIDATION} is not enabled. In the future, this will return a conflict error"
    );
    Remarks {
        warnings: vec![warning],
        audit_annotations: vec![("authentication.k8s.io/token-request-uid-mismatch", mismatch)],
    }
}

/// The account of the path.
async fn account(context: &RequestContext<'_>) -> Result<Value, Status> {
    let accounts = GroupResource::new("", "serviceaccounts");
    context.registry.get(&accounts, context.namespace, context.name).await
}

/// Rejects a name or namespace in the body that differs from the path.
fn check_place(request: &Value, field: &str, expected: &str, name: &str) -> Result<(), Status> {
    let told = request.str_at(&format!("metadata.{field}"));
    if told.is_empty() || told == expected {
        return Ok(());
    }
    let path = FieldPath::new("metadata").child(field);
    let detail = format!("must match the service account {field} if specified");
    let errors: ErrorList = vec![FieldError::invalid(&path, told, detail)];
    Err(Status::invalid(&GroupKind::new(GROUP, KIND), name, &errors))
}

fn validate(seconds: i64) -> ErrorList {
    let path = FieldPath::new("spec").child("expirationSeconds");
    let mut errors = ErrorList::new();
    if seconds < MIN_SECONDS {
        let detail = "may not specify a duration less than 10 minutes";
        errors.push(FieldError::invalid(&path, seconds, detail));
    }
    if seconds > MAX_SECONDS {
        let detail = "may not specify a duration larger than 2^32 seconds";
        errors.push(FieldError::invalid(&path, seconds, detail));
    }
    errors
}

/// Reads the object to bind the token to, and checks its uid and, for a pod, its service account.
async fn binding(context: &RequestContext<'_>, wanted: &Value) -> Result<Binding, Status> {
    if wanted.is_null() {
        return Ok(Binding::None);
    }
    let version = GroupVersion::parse(wanted.str_at("apiVersion")).unwrap_or_default();
    let (kind, name) = (wanted.str_at("kind"), wanted.str_at("name"));
    let (resource, namespace) = match (version.group.as_str(), kind) {
        ("", "Pod") => ("pods", context.namespace),
        ("", "Secret") => ("secrets", context.namespace),
        ("", "Node") => ("nodes", ""),
        (group, kind) => {
            return Err(Status::bad_request(format!(
                "cannot bind token to object of type {group}/{}, Kind={kind}",
                version.version
            )));
        }
    };
    rules::name_parameter(name)?;
    let object = context.registry.get(&GroupResource::new("", resource), namespace, name).await?;
    let bound = reference(&object);
    let binding = match kind {
        "Pod" => {
            let account = context.name;
            if object.str_at("spec.serviceAccountName") != account {
                return Err(Status::bad_request(format!(
                    "cannot bind token for serviceaccount \"{account}\" to pod running with different serviceaccount name."
                )));
            }
            Binding::Pod(bound, node_of(context, &object).await?)
        }
        "Secret" => Binding::Secret(bound),
        _ => Binding::Node(bound),
    };
    let (wanted, uid) = (wanted.str_at("uid"), object.str_at("metadata.uid"));
    if !wanted.is_empty() && wanted != uid {
        let why = format!(
            "the UID in the bound object reference ({wanted}) does not match the UID in record. The object might have \
             been deleted and then recreated"
        );
        return Err(Status::conflict(&GroupResource::new("", kind), name, &why));
    }
    Ok(binding)
}

/// The node of a pod, without uid if the node does not exist.
async fn node_of(context: &RequestContext<'_>, pod: &Value) -> Result<Option<Reference>, Status> {
    let name = pod.str_at("spec.nodeName");
    if name.is_empty() {
        return Ok(None);
    }
    let nodes = GroupResource::new("", "nodes");
    let node = match context.registry.get_cached(&nodes, "", name).await {
        Ok(node) => Ok(node),
        Err(_) => context.registry.get(&nodes, "", name).await,
    };
    match node {
        Ok(node) => Ok(Some(reference(&node))),
        Err(status) if status.reason == StatusReason::NotFound => {
            Ok(Some(Reference { name: name.to_owned(), uid: String::new() }))
        }
        Err(status) => Err(Status::internal_error(status)),
    }
}

fn reference(object: &Value) -> Reference {
    Reference { name: object.name().to_owned(), uid: object.str_at("metadata.uid").to_owned() }
}
