//! The parameters of policies: objects of any kind that a binding names or selects.

use pintle_admission::AdmissionRequest;
use pintle_machinery::{
    GroupResource, GroupVersion, GroupVersionKind, Status, StatusReason, Value, ValueExt,
    meta::ObjectMeta,
    selectors::{LabelSelector, SelectorError},
};
use pintle_offload::Pace;
use pintle_registry::ServedKind;
use std::{collections::VecDeque, sync::Arc};

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

/// The maximum number of objects that are decoded at once: a namespace may have very many.
const PAGE: usize = 64;

/// The parameters with which a policy is evaluated, one after the other; `None` is an evaluation without parameters.
/// Those that a selector selects are read page by page.
pub(super) struct Params<'a> {
    read: VecDeque<Option<Arc<Value>>>,
    unread: Option<Selected<'a>>,
}

/// The parameters that a selector selects, behind the object named `after`.
struct Selected<'a> {
    kind: &'a ParamKind,
    resource: GroupResource,
    namespace: &'a str,
    selector: &'a LabelSelector,
    after: String,
}

/// Finds the parameters of a binding, which does not apply if there are none.
///
/// # Errors
/// The message for parameters that cannot be found, if the binding requires them.
pub(super) async fn find_params<'a>(
    kind: Option<(&'a ParamKind, &ServedKind)>,
    reference: Option<&'a ParamRef>,
    request: &'a AdmissionRequest<'_>,
    pace: &mut Pace,
) -> Result<Params<'a>, String> {
    let (Some((kind, served)), Some(reference)) = (kind, reference) else {
        return Ok(Params { read: VecDeque::from([None]), unread: None });
    };
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
    let mut params = Params { read: VecDeque::new(), unread: None };
    if !reference.name.is_empty() {
        match request.get(&resource, namespace, &reference.name).await {
            Ok(param) => params.read.push_back(Some(kind.convert(param, request).await?)),
            Err(status) if status.reason == StatusReason::NotFound => {}
            Err(status) => return Err(status.message),
        }
    } else if let Some(selector) = &reference.selector {
        let selector = selector.as_ref().map_err(|error| error.0.clone())?;
        params.unread = Some(Selected { kind, resource, namespace, selector, after: String::new() });
        params.fill(request, pace).await?;
    }
    if params.is_empty() && reference.denies_missing {
        return Err("no params found for policy binding with `Deny` parameterNotFoundAction".to_owned());
    }
    Ok(params)
}

/// All parameters of a binding.
///
/// # Errors
/// As [`find_params`].
pub(super) async fn collect_params(
    kind: Option<(&ParamKind, &ServedKind)>,
    reference: Option<&ParamRef>,
    request: &AdmissionRequest<'_>,
    pace: &mut Pace,
) -> Result<Vec<Option<Arc<Value>>>, String> {
    let mut params = find_params(kind, reference, request, pace).await?;
    let mut all = Vec::new();
    while let Some(param) = params.next(request, pace).await? {
        all.push(param);
    }
    Ok(all)
}

impl Params<'_> {
    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.read.is_empty()
    }

    /// The next one.
    ///
    /// # Errors
    /// When the parameters cannot be read or converted.
    pub(super) async fn next(
        &mut self,
        request: &AdmissionRequest<'_>,
        pace: &mut Pace,
    ) -> Result<Option<Option<Arc<Value>>>, String> {
        let next = self.read.pop_front();
        self.fill(request, pace).await?;
        Ok(next)
    }

    /// Reads pages until one has a parameter, if none is left.
    async fn fill(&mut self, request: &AdmissionRequest<'_>, pace: &mut Pace) -> Result<(), String> {
        while self.read.is_empty()
            && let Some(mut selected) = self.unread.take()
        {
            let Selected { kind, resource, namespace, selector, after } = &mut selected;
            // Few objects are decoded once for several requests.
            let is_long = || request.lister.count(resource, namespace, "").is_some_and(|count| count > PAGE);
            let page = match !after.is_empty() || is_long() {
                true => request.lister.page(resource, namespace, after, PAGE),
                false => None,
            };
            let (objects, has_more) = match page {
                Some(page) => {
                    let has_more = page.len() >= PAGE;
                    *after = page.last().map(|object| object.name().to_owned()).unwrap_or_default();
                    (page.into_iter().map(Arc::new).collect(), has_more)
                }
                None if after.is_empty() => {
                    (request.list(resource, namespace).await.map_err(|status| status.message)?, false)
                }
                None => return Err("the cache of the parameters was lost while they were read".to_owned()),
            };
            for param in objects {
                pace.breathe().await;
                if selector.matches_labels(param.at("metadata.labels")) {
                    self.read.push_back(Some(kind.convert(param, request).await?));
                }
            }
            if has_more {
                self.unread = Some(selected);
            }
        }
        Ok(())
    }
}

impl ParamKind {
    /// The object in the version of the kind.
    async fn convert(&self, param: Arc<Value>, request: &AdmissionRequest<'_>) -> Result<Arc<Value>, String> {
        if param.str_at("apiVersion") == &*self.api_version {
            return Ok(param);
        }
        let text = |status: Status| status.message;
        let mut converted = request.context.registry.convert(&param, &self.kind).await.map_err(text)?;
        converted.set("apiVersion", &*self.api_version);
        converted.set("kind", self.kind.kind.as_str());
        Ok(Arc::new(converted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_admission::{
        Operation,
        testing::{Objects, Request},
    };
    use pintle_machinery::{GroupVersionResource, json};

    /// The names of the parameters that are labelled `a`, and the largest number of those that were read at once.
    fn selected(count: usize) -> (Vec<String>, usize) {
        let object = |index: usize| {
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
                "name": format!("n{index:03}"), "namespace": "ns", "labels": {"l": if index % 70 < 2 { "a" } else { "b" }},
            }})
        };
        let mut request = Request::new(Operation::Create, "", "v1", "pods", "ns");
        request.objects = Objects::new((0..count).map(|index| ("configmaps", object(index))));
        let kind = ParamKind::new(&json!({"apiVersion": "v1", "kind": "ConfigMap"}));
        let served =
            ServedKind { resource: GroupVersionResource::new("", "v1", "configmaps"), namespaced: true };
        let reference = ParamRef::new(&json!({"selector": {"matchLabels": {"l": "a"}}}));
        request.with(async |request| {
            let mut pace = Pace::new();
            let found = find_params(Some((&kind, &served)), Some(&reference), request, &mut pace).await;
            let (mut params, mut names, mut most) = (found.unwrap(), Vec::new(), 0);
            loop {
                most = most.max(params.read.len());
                let Some(param) = params.next(request, &mut pace).await.unwrap() else { break };
                names.push(param.unwrap().name().to_owned());
            }
            (names, most)
        })
    }

    #[test]
    fn very_many_parameters_are_read_page_by_page() {
        assert_eq!(selected(1), (vec!["n000".to_owned()], 1));
        let (names, most) = selected(300);
        assert_eq!(names, ["n000", "n001", "n070", "n071", "n140", "n141", "n210", "n211", "n280", "n281"]);
        assert!(most <= 2, "{most}");
    }
}
