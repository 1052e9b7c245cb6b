//! The declaration of a resource.

use crate::{
    Converter, DefaultStrategy, DefaultTable, LazySchema, NamedCreater, SelectableField, Strategy,
    Subresource, TableConvertor,
};
use pintle_machinery::{GroupResource, GroupVersionKind, GroupVersionResource, Value};
use std::sync::Arc;

/// Whether objects live in namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Objects live in a namespace.
    Namespaced,
    /// Objects belong to the whole cluster.
    Cluster,
}

/// What can be done with a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names are the API's own and say it")]
pub enum Verb {
    Create,
    Delete,
    DeleteCollection,
    Get,
    List,
    Patch,
    Update,
    Watch,
}

impl Verb {
    /// All verbs of a stored resource, in the order of discovery.
    pub const ALL: [Verb; 8] = [
        Verb::Create,
        Verb::Delete,
        Verb::DeleteCollection,
        Verb::Get,
        Verb::List,
        Verb::Patch,
        Verb::Update,
        Verb::Watch,
    ];

    /// The verb as discovery and authorization name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Verb::Create => "create",
            Verb::Delete => "delete",
            Verb::DeleteCollection => "deletecollection",
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Patch => "patch",
            Verb::Update => "update",
            Verb::Watch => "watch",
        }
    }
}

/// Where and as what objects are stored.
#[derive(Debug, Clone)]
pub struct StorageLocation {
    /// The path below the storage prefix, as kube-apiserver lays it out: `pods`, `services/specs`, `minions`.
    pub path: String,
    /// The kind that stored bytes are in. Differs from the resource's own for versions that are not stored and for
    /// cohabiting resources (`events.k8s.io` events are stored as core events); and for a resource whose newest version is
    /// too new to be stored, since the server before this one must be able to read it. That one is then read by one of
    /// [`Resource::stored_versions`].
    pub kind: GroupVersionKind,
    /// How the stored bytes are made.
    pub encoding: StorageEncoding,
}

/// How stored bytes are made of an object.
#[derive(Debug, Clone, Copy, Default)]
pub enum StorageEncoding {
    /// In the media type that is configured, by the schema of the storage kind.
    #[default]
    Configured,
    /// As JSON, whatever is configured.
    Json,
    /// As JSON that this function makes, whatever is configured.
    JsonBy(fn(&Value) -> Vec<u8>),
}

/// What answers for the objects of a resource.
#[derive(Clone, Default)]
pub enum Backing {
    /// The objects are stored.
    #[default]
    Stored,
    /// Nothing is stored: a POST is a question, and its answer the object filled in (access reviews). The body may name
    /// the object of the question (`bindings`).
    Creater(Arc<dyn NamedCreater>),
    /// Declared so that discovery lists it; requests are not served yet.
    Unserved,
}

/// The way between a served version and the storage kind. Both take whole objects and set `kind` and `apiVersion`.
#[derive(Debug, Clone, Copy)]
pub struct Conversion {
    /// From this version to the storage kind.
    pub to_storage: fn(Value) -> Value,
    /// From the storage kind to this version.
    pub from_storage: fn(Value) -> Value,
}

/// Another version of the storage kind in which objects may be stored: by an older server, or by one that was configured
/// otherwise.
#[derive(Debug, Clone)]
pub struct StoredVersion {
    /// What such an object says it is.
    pub kind: GroupVersionKind,
    /// The type in the schema that it is read by. Empty when the schema has none: then it is read from JSON as it is.
    pub type_name: String,
    /// From this version to the resource's own; `kind` and `apiVersion` are set afterwards.
    pub to_storage: fn(Value) -> Value,
}

/// One resource in one version.
#[derive(Clone)]
pub struct Resource {
    /// Group, version and plural name.
    pub resource: GroupVersionResource,
    /// The kind of the objects.
    pub kind: String,
    /// The kind of lists.
    pub list_kind: String,
    /// The name in the singular.
    pub singular: String,
    /// Other names that clients offer their users.
    pub short_names: Vec<String>,
    /// Groups of resources that clients offer, such as `all`.
    pub categories: Vec<String>,
    /// Namespaced or not.
    pub scope: Scope,
    /// The type in the built-in schema, such as `k8s.io/api/core/v1.Pod`; empty for custom resources.
    pub type_name: String,
    /// The schema of a custom resource, made when it is first needed.
    pub custom_schema: Option<Arc<LazySchema>>,
    /// What can be done with it.
    pub verbs: Vec<Verb>,
    /// Whether its objects are stored, and what answers when they are not.
    pub backing: Backing,
    /// Where it is stored, if it is.
    pub storage: StorageLocation,
    /// How objects get from this version to the storage kind and back; `None` when they are the same.
    pub conversion: Option<Conversion>,
    /// How objects of a custom resource get from one version to another; `None` when there is only one version. The
    /// rules of a version ([`Resource::strategy`]) are then about objects of that very version.
    pub converter: Option<Arc<dyn Converter>>,
    /// In which other versions its objects may be found in the store. Of the declaration in the storage version.
    pub stored_versions: Vec<StoredVersion>,
    /// The rules of the kind, on objects of the storage kind.
    pub strategy: Arc<dyn Strategy>,
    /// How it prints.
    pub table: Arc<dyn TableConvertor>,
    /// Its subresources.
    pub subresources: Vec<Subresource>,
    /// What lists and watches can select by, besides name and namespace.
    pub selectable_fields: Vec<SelectableField>,
    /// How a selector that names another field is refused, when the kind has words of its own for it.
    pub unsupported_field: Option<fn(&str) -> String>,
    /// What every request to a resource is warned of that will not be there for ever.
    pub deprecation: Option<String>,
    /// Dotted paths of integers that are pointers in this version and plain numbers inside the reference: there, an object
    /// of which nothing is known, that of a bookmark, has zero.
    pub plain_integers: &'static [&'static str],
    /// Annotations in which this version keeps integers that are fields inside the reference; zero in such an object.
    pub integer_annotations: &'static [&'static str],
}

impl Resource {
    /// A stored resource with all verbs, no rules and the default table. `type_name` is the type in the schema; group
    /// path and kind come from the parts.
    pub fn new(
        group: &str,
        version: &str,
        plural: &str,
        singular: &str,
        kind: &str,
        scope: Scope,
        type_name: &str,
    ) -> Resource {
        Resource {
            resource: GroupVersionResource::new(group, version, plural),
            kind: kind.to_owned(),
            list_kind: format!("{kind}List"),
            singular: singular.to_owned(),
            short_names: Vec::new(),
            categories: Vec::new(),
            scope,
            type_name: type_name.to_owned(),
            custom_schema: None,
            verbs: Verb::ALL.to_vec(),
            backing: Backing::Stored,
            storage: StorageLocation {
                path: plural.to_owned(),
                kind: GroupVersionKind::new(group, version, kind),
                encoding: StorageEncoding::Configured,
            },
            conversion: None,
            converter: None,
            stored_versions: Vec::new(),
            strategy: Arc::new(DefaultStrategy),
            table: Arc::new(DefaultTable),
            subresources: Vec::new(),
            selectable_fields: Vec::new(),
            unsupported_field: None,
            deprecation: None,
            plain_integers: &[],
            integer_annotations: &[],
        }
    }

    /// The resource without its version.
    pub fn group_resource(&self) -> GroupResource {
        self.resource.group_resource()
    }

    /// The kind in this version.
    pub fn group_version_kind(&self) -> GroupVersionKind {
        self.resource.group_version().with_kind(self.kind.clone())
    }

    /// Whether objects live in namespaces.
    pub fn is_namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }

    /// Whether objects are stored; others have no storage, and only their own verbs.
    pub fn is_stored(&self) -> bool {
        matches!(self.backing, Backing::Stored)
    }

    /// A subresource by name.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|subresource| subresource.name == name)
    }
}
