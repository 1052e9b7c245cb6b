//! The parameters of policies: objects of any kind that a binding names or selects.

use pintle_admission::{AdmissionRequest, Undecoded};
use pintle_machinery::{
    GroupVersion, GroupVersionKind, Status, StatusReason, Value, ValueExt,
    codec::json::with_written_fields,
    selectors::{LabelSelector, SelectorError},
};
use pintle_registry::ServedKind;
use pintle_schema::Schema;
use std::{borrow::Cow, sync::Arc};

/// The kind of a policy's parameters.
#[derive(Debug)]
pub(super) struct ParamKind {
    kind: GroupVersionKind,
    api_version: Box<str>,
}

impl ParamKind {
    pub(super) fn new(kind: &Value) -> ParamKind {
        let api_version = kind.str_at("apiVersion");
        let group_version =
            GroupVersion::parse(api_version).unwrap_or_else(|| GroupVersion::new("", api_version));
        ParamKind { kind: group_version.with_kind(kind.str_at("kind")), api_version: api_version.into() }
    }

    /// The resource of the kind.
    ///
    /// # Errors
    /// The message for a kind that is not served.
    pub(super) fn resolve(&self, request: &AdmissionRequest<'_>) -> Result<ServedKind, String> {
        let served = request.context.registry.served(&self.kind);
        served.ok_or_else(|| format!("failed to find resource referenced by paramKind: '{}'", self.kind))
    }
}

/// The parameters of a binding.
#[derive(Debug)]
pub(super) struct ParamRef {
    name: Box<str>,
    namespace: Box<str>,
    selector: Option<Result<LabelSelector, SelectorError>>,
    denies_missing: bool,
}

impl ParamRef {
    pub(super) fn new(reference: &Value) -> ParamRef {
        let selector = reference.field("selector").filter(|selector| !selector.is_null());
        ParamRef {
            name: reference.str_at("name").into(),
            namespace: reference.str_at("namespace").into(),
            selector: selector.map(|selector| LabelSelector::from_object(Some(selector))),
            denies_missing: reference.str_at("parameterNotFoundAction") == "Deny",
        }
    }
}

/// The parameters with which a policy is evaluated, one after the other; `None` is an evaluation without parameters. An
/// empty list means that the binding does not apply. They are read by [`ParamKind::read`] when it is their turn: who can
/// write them may write many.
///
/// # Errors
/// The message for parameters that cannot be found, if the binding requires them.
pub(super) async fn find_params<'a>(
    served: Option<&ServedKind>,
    reference: Option<&ParamRef>,
    request: &AdmissionRequest<'a>,
) -> Result<Vec<Option<Undecoded<'a>>>, String> {
    let (Some(served), Some(reference)) = (served, reference) else { return Ok(vec![None]) };
    let namespace = match served.namespaced {
        true if !reference.namespace.is_empty() => &*reference.namespace,
        true if request.namespace.is_empty() => {
            let message =
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources";
            return Err(message.to_owned());
        }
        true => request.namespace,
        false if !reference.namespace.is_empty() => {
            return Err("paramRef.namespace must not be provided for a cluster-scoped `paramKind`".to_owned());
        }
        false => "",
    };
    let resource = served.resource.group_resource();
    let mut params = Vec::new();
    if !reference.name.is_empty() {
        match request.get(&resource, namespace, &reference.name).await {
            Ok(param) => params.push(Some(param.into())),
            Err(status) if status.reason == StatusReason::NotFound => {}
            Err(status) => return Err(status.message),
        }
    } else if let Some(selector) = &reference.selector {
        let selector = selector.as_ref().map_err(|error| error.0.clone())?;
        let selected = request.select(&resource, namespace, selector).await;
        params.extend(selected.map_err(|status| status.message)?.into_iter().map(Some));
    }
    if params.is_empty() && reference.denies_missing {
        return Err("no params found for policy binding with `Deny` parameterNotFoundAction".to_owned());
    }
    Ok(params)
}

impl ParamKind {
    /// A parameter in the version of the kind.
    ///
    /// # Errors
    /// The message for an object that cannot be decoded or converted.
    pub(super) async fn read(
        &self,
        param: &Undecoded<'_>,
        request: &AdmissionRequest<'_>,
    ) -> Result<Arc<Value>, String> {
        let text = |status: Status| status.message;
        let param = param.decode().await.map_err(text)?;
        if param.str_at("apiVersion") == &*self.api_version {
            return Ok(match self.written(&param).map_err(text)? {
                Cow::Borrowed(_) => param,
                Cow::Owned(written) => Arc::new(written),
            });
        }
        let mut converted = request.context.registry.convert(&param, &self.kind).await.map_err(text)?;
        converted.set("apiVersion", &*self.api_version);
        converted.set("kind", self.kind.kind.as_str());
        Ok(Arc::new(self.written(&converted).map_err(text)?.into_owned()))
    }

    /// A parameter with the fields that its type always has.
    fn written<'v>(&self, param: &'v Value) -> Result<Cow<'v, Value>, Status> {
        let GroupVersionKind { group, version, kind } = &self.kind;
        match Schema::builtin().by_kind(group, version, kind) {
            Some(schema) => with_written_fields(param, schema),
            None => Ok(Cow::Borrowed(param)),
        }
    }
}
