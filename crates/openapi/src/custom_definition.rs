//! Describes custom resources to the documents.

use pintle_machinery::{GroupVersionKind, Value, ValueExt};
use std::sync::Arc;

/// The custom resource definitions whose resources the documents describe.
///
/// A document is built from definitions on request, so that an idle definition costs only its [`PublishedDefinition`].
pub trait CustomDefinitions: Send + Sync {
    /// The definitions, sorted by name.
    fn published(&self) -> Vec<PublishedDefinition>;

    /// Returns a definition as an object of `apiextensions.k8s.io/v1`, if it is published. Schemas that are not
    /// structural are left out.
    fn definition(&self, name: &str) -> Option<Value>;
}

/// The documents that contain a definition, and the definition's current state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedDefinition {
    /// The name of the definition.
    pub name: Arc<str>,
    /// The group of the custom resource.
    pub group: Arc<str>,
    /// The served versions.
    pub versions: Arc<[Box<str>]>,
    /// A text that is different for each content.
    pub state: Arc<str>,
}

impl PublishedDefinition {
    /// Creates it with a state made of the definition's uid and generation. `versions` are the served ones.
    pub fn new<'a>(
        name: &str,
        uid: &str,
        generation: i64,
        group: &str,
        versions: impl Iterator<Item = &'a str>,
    ) -> PublishedDefinition {
        PublishedDefinition {
            name: name.into(),
            group: group.into(),
            versions: versions.map(Into::into).collect(),
            state: format!("{uid} {generation}").into(),
        }
    }

    /// Creates it from a definition object.
    pub fn of(definition: &Value) -> PublishedDefinition {
        PublishedDefinition::new(
            definition.str_at("metadata.name"),
            definition.str_at("metadata.uid"),
            definition.i64_at("metadata.generation").unwrap_or_default(),
            definition.str_at("spec.group"),
            served(definition).map(|version| version.str_at("name")),
        )
    }
}

fn served(definition: &Value) -> impl Iterator<Item = &Value> {
    definition.items_at("spec.versions").iter().filter(|version| version.bool_at("served"))
}

/// One version of a custom resource.
pub(crate) struct CustomResource<'a> {
    pub(crate) kind: GroupVersionKind,
    pub(crate) list_kind: &'a str,
    pub(crate) plural: &'a str,
    pub(crate) is_namespaced: bool,
    /// The declared schema; `None` when it is absent or cannot be described.
    pub(crate) schema: Option<&'a Value>,
    /// Whether all unknown fields are preserved.
    pub(crate) preserves_unknown_fields: bool,
    pub(crate) has_status: bool,
    pub(crate) has_scale: bool,
    /// The paths of the selectable fields.
    pub(crate) selectable_fields: Vec<&'a str>,
    /// The names of its definitions that built-in definitions have in the same document.
    taken_names: Vec<String>,
}

impl<'a> CustomResource<'a> {
    /// The served versions of a definition.
    pub(crate) fn all(definition: &'a Value) -> impl Iterator<Item = CustomResource<'a>> {
        served(definition).map(|version| CustomResource::new(definition, version))
    }

    fn new(definition: &'a Value, version: &'a Value) -> CustomResource<'a> {
        let has =
            |subresource| version.at("subresources").is_some_and(|own| own.field(subresource).is_some());
        let fields = version.items_at("selectableFields").iter().map(|field| field.str_at("jsonPath"));
        CustomResource {
            kind: GroupVersionKind::new(
                definition.str_at("spec.group"),
                version.str_at("name"),
                definition.str_at("spec.names.kind"),
            ),
            list_kind: definition.str_at("spec.names.listKind"),
            plural: definition.str_at("spec.names.plural"),
            is_namespaced: definition.str_at("spec.scope") == "Namespaced",
            schema: version.at("schema.openAPIV3Schema"),
            preserves_unknown_fields: definition.bool_at("spec.preserveUnknownFields"),
            has_status: has("status"),
            has_scale: has("scale"),
            selectable_fields: fields.map(|path| path.strip_prefix('.').unwrap_or(path)).collect(),
            taken_names: Vec::new(),
        }
    }

    /// Gives definitions whose names are taken other names.
    pub(crate) fn rename_definitions(&mut self, is_taken: impl Fn(&str) -> bool) {
        let names = [&*self.kind.kind, self.list_kind].map(|kind| self.model_name(kind));
        self.taken_names = names.into_iter().filter(|name| is_taken(name)).collect();
    }

    /// The definition name of a kind of this version: the group's labels in reverse order, version and kind. As in the
    /// reference, a name that is taken gets a number.
    pub(crate) fn model_name(&self, kind: &str) -> String {
        let labels: Vec<&str> = self.kind.group.rsplit('.').collect();
        let name = format!("{}.{}.{kind}", labels.join("."), self.kind.version);
        match self.taken_names.contains(&name) {
            true => name + "_v2",
            false => name,
        }
    }
}
