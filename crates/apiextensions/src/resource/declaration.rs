//! Builds the declarations of a custom resource: one for each version of its definition.

use super::{
    scale::plain,
    schema::{Source, lazy_schema, lazy_structural},
    strategy::{CustomResourceStrategy, Rules, StatusStrategy},
};
use crate::{
    columns,
    columns::age_column,
    conversion::{Webhooks, converter},
    definition_view::{Definition, Spec, Version},
    selectable_fields, unsupported_field,
};
use arc_swap::ArcSwap;
use pintle_machinery::{GroupVersionKind, compare_versions, json};
use pintle_registry::{
    Converter, ObjectForm, ObjectModel, PatchType, Resource, Routing, ScalePaths, ScaleValues, Scope,
    StorageEncoding, Subresource, SubresourceKind, TableConvertor, Verb,
};
use std::sync::{Arc, LazyLock, atomic::AtomicBool};

/// The object model of custom resources.
const OBJECT_MODEL: ObjectModel = ObjectModel {
    form: ObjectForm::Map,
    routing: Routing::Verbs,
    patch_types: &[PatchType::Json, PatchType::Merge, PatchType::Apply],
    protobuf: false,
    full_response_kind: true,
};

/// The verbs of custom resources, in the order in which discovery lists them.
const VERBS: [Verb; 8] = [
    Verb::Delete,
    Verb::DeleteCollection,
    Verb::Get,
    Verb::List,
    Verb::Patch,
    Verb::Create,
    Verb::Update,
    Verb::Watch,
];

/// The declarations of one definition, and their shared state.
pub(crate) struct Declared {
    /// All versions. Those that are not served are needed for stored objects and managed fields in them.
    pub(crate) versions: Vec<Resource>,
    /// Set when the definition is being deleted: creates are then refused.
    pub(crate) terminating: Arc<AtomicBool>,
    /// Must be updated to the latest state of the definition.
    pub(crate) source: Source,
}

/// Declares the resources of a definition under its accepted names.
pub(crate) fn declare(definition: &Arc<Definition>, webhooks: &Webhooks) -> Declared {
    let terminating = Arc::new(AtomicBool::new(definition.is_true("Terminating")));
    let source = Arc::new(ArcSwap::new(definition.object().clone()));
    let converter: Option<Arc<dyn Converter>> = match definition.spec.versions.len() {
        0 | 1 => None,
        _ => Some(converter(definition, webhooks)),
    };
    let stored = definition.spec.versions.iter().find(|version| version.storage);
    let stored = stored.map(|version| version.name.as_str()).unwrap_or_default();
    let shown_by_all = definition.shown();
    let versions = definition.spec.versions.iter().zip(&shown_by_all);
    let versions = versions.map(|(version, shown)| {
        let mut resource = declare_version(definition, version, stored, &terminating, &source);
        resource.converter = converter.clone();
        resource.table = columns(shown);
        resource.selectable_fields = selectable_fields(shown, &shown_by_all);
        resource
    });
    Declared { versions: versions.collect(), terminating, source }
}

fn declare_version(
    definition: &Arc<Definition>,
    version: &Version,
    stored: &str,
    terminating: &Arc<AtomicBool>,
    source: &Source,
) -> Resource {
    let group = definition.spec.group.as_str();
    let names = &definition.status.accepted_names;
    let scope = match definition.spec.scope.as_str() {
        "Namespaced" => Scope::Namespaced,
        _ => Scope::Cluster,
    };
    let mut resource =
        Resource::new(group, &version.name, &names.plural, &names.singular, &names.kind, scope, "");
    resource.list_kind = names.list_kind.clone();
    resource.short_names = names.short_names.clone();
    resource.categories = names.categories.clone();
    let structural = lazy_structural(source, &version.name);
    resource.model = OBJECT_MODEL;
    resource.verbs = VERBS.to_vec();
    resource.own_schema = Some(lazy_schema(&structural));
    resource.storage.path = format!("{group}/{}", names.plural);
    resource.storage.kind = GroupVersionKind::new(group, stored, names.kind.as_str());
    resource.storage.encoding = StorageEncoding::AsWritten;
    let subresources = version.subresources.as_ref();
    let has_status = subresources.is_some_and(|subresources| subresources.status.is_some());
    let scale = subresources.and_then(|subresources| subresources.scale.as_ref());
    let rules = Arc::new(Rules {
        kind: resource.group_version_kind(),
        resource: resource.group_resource(),
        namespaced: resource.is_namespaced(),
        has_status,
        scale: scale.cloned(),
        schema: structural,
        terminating: terminating.clone(),
    });
    resource.strategy = Arc::new(CustomResourceStrategy(rules.clone()));
    if has_status {
        resource.subresources.push(Subresource {
            name: "status".to_owned(),
            kind: SubresourceKind::Object {
                strategy: Arc::new(StatusStrategy(rules)),
                verbs: vec![Verb::Get, Verb::Patch, Verb::Update],
                has_table: true,
            },
        });
    }
    if let Some(scale) = scale {
        let path = |path: &str| plain(path).to_owned();
        resource.subresources.push(Subresource {
            name: "scale".to_owned(),
            kind: SubresourceKind::Scale(ScalePaths {
                spec_replicas: path(&scale.spec_replicas_path),
                status_replicas: path(&scale.status_replicas_path),
                selector: scale.label_selector_path.as_deref().filter(|path| !path.is_empty()).map(path),
                values: ScaleValues::Any,
                table: scale_table(),
            }),
        });
    }
    resource.unsupported_field = Some(|_, field| unsupported_field(field));
    resource.deprecation = deprecation(definition, version);
    resource
}

/// The columns of a scale.
fn scale_table() -> Arc<dyn TableConvertor> {
    static TABLE: LazyLock<Arc<dyn TableConvertor>> = LazyLock::new(|| {
        let column = |name: &str, what: &str, path: &str| json!({"name": name, "type": "integer", "description": what, "jsonPath": path});
        columns(&json!({"additionalPrinterColumns": [
            column("Desired", "Number of desired replicas", ".spec.replicas"),
            column("Available", "Number of actual replicas", ".status.replicas"),
            age_column(),
        ]}))
    });
    TABLE.clone()
}

/// The warning for requests to a deprecated version.
fn deprecation(definition: &Definition, version: &Version) -> Option<String> {
    if !version.deprecated {
        return None;
    }
    if let Some(warning) = &version.deprecation_warning {
        return Some(warning.clone());
    }
    let Spec { group, names, versions, .. } = &definition.spec;
    let kind = &names.kind;
    let mut warning = format!("{group}/{} {kind} is deprecated", version.name);
    let better = versions.iter().filter(|other| {
        other.served && !other.deprecated && compare_versions(&version.name, &other.name).is_lt()
    });
    if let Some(best) = better.max_by(|a, b| compare_versions(&a.name, &b.name)) {
        warning.push_str(&format!("; use {group}/{} {kind}", best.name));
    }
    Some(warning)
}
