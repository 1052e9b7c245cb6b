//! The declaration of one resource in one version.

use crate::{
    ComputedObjects, Converter, DefaultStrategy, DefaultTable, NamedCreater, ObjectModel, SelectableField,
    Strategy, Subresource, TableConvertor, Verb,
};
use pintle_feature_gates::Gate;
use pintle_machinery::{
    GroupResource, GroupVersionKind, GroupVersionResource, Status, Value, ValueExt, json,
};
use pintle_schema::Schema;
use std::sync::{Arc, LazyLock};

/// Whether a resource is namespaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Each object belongs to a namespace.
    Namespaced,
    /// Objects belong to the whole cluster.
    Cluster,
}

/// The storage path of a resource and the form of the stored bytes.
#[derive(Debug, Clone)]
pub struct StorageLocation {
    /// The path below the storage prefix, as kube-apiserver lays it out: `pods`, `services/specs`, `minions`.
    pub path: String,
    /// The kind of the stored bytes. It differs from the resource's own kind for versions that are not stored, for
    /// cohabiting resources (`events.k8s.io` events are stored as core events), and for a resource whose newest version
    /// is not stored yet because the previous release must be able to read it. Objects found in such a newer version
    /// are read by [`Resource::stored_versions`].
    pub kind: GroupVersionKind,
    /// The encoding of the stored bytes.
    pub encoding: StorageEncoding,
}

/// The encoding of stored bytes.
#[derive(Debug, Clone, Copy, Default)]
pub enum StorageEncoding {
    /// The media type that is configured for storage, with the schema of the storage kind.
    #[default]
    Configured,
    /// Always JSON.
    Json,
    /// JSON or CBOR, in the version of the write, which may be any version with the same storage path. A read decodes the
    /// object by the present schema of that version, and keeps the version: the declarations may have changed since the
    /// write.
    AsWritten,
    /// Always JSON, written by this function.
    JsonBy(fn(&Value) -> Vec<u8>),
}

impl StorageEncoding {
    /// Whether stored and cached objects keep the version of their write. Otherwise all are in the storage version.
    pub fn keeps_version(self) -> bool {
        matches!(self, StorageEncoding::AsWritten)
    }
}

/// The implementation behind a resource.
#[derive(Clone, Default)]
pub enum Backing {
    /// The objects are stored.
    #[default]
    Stored,
    /// Nothing is stored: a POST is answered with the object filled in (access reviews). The body may name the object
    /// that the request is about (`bindings`).
    Creater(Arc<dyn NamedCreater>),
    /// Nothing is stored: objects are computed for each read (component statuses).
    Computed(Arc<dyn ComputedObjects>),
}

/// The conversion between a served version and the storage kind. Both functions take whole objects and set `kind` and
/// `apiVersion`.
#[derive(Debug, Clone, Copy)]
pub struct Conversion {
    /// From this version to the storage kind.
    pub to_storage: fn(Value) -> Value,
    /// From the storage kind to this version.
    pub from_storage: fn(Value) -> Value,
}

/// Another version of the storage kind that objects may be stored in, by an older server or by a server that was
/// configured otherwise.
#[derive(Debug, Clone)]
pub struct StoredVersion {
    /// The kind and version that the stored object carries.
    pub kind: GroupVersionKind,
    /// The schema type that decodes the object. Empty when the schema has none: the JSON is then read without a schema.
    pub type_name: String,
    /// Converts this version to the resource's own; `kind` and `apiVersion` are set afterwards.
    pub to_storage: fn(Value) -> Value,
}

/// A schema that is built on first use. Most custom resources of a cluster are idle, and a schema is large.
pub type LazySchema = LazyLock<Arc<Schema>, Box<dyn FnOnce() -> Arc<Schema> + Send>>;

/// One resource in one version.
#[derive(Clone)]
pub struct Resource {
    /// Group, version and plural name.
    pub resource: GroupVersionResource,
    /// The kind of the objects.
    pub kind: String,
    /// The kind of lists.
    pub list_kind: String,
    /// The singular name.
    pub singular: String,
    /// Short names, such as `po`, for clients such as `kubectl`.
    pub short_names: Vec<String>,
    /// Categories, such as `all`.
    pub categories: Vec<String>,
    /// Namespaced or not.
    pub scope: Scope,
    /// How the objects are held and served.
    pub model: ObjectModel,
    /// The type in the built-in schema, such as `k8s.io/api/core/v1.Pod`; empty with a schema of its own.
    pub type_name: String,
    /// The schema of a resource that the built-in schema does not have. Its defaults are applied by
    /// [`Strategy::set_defaults`].
    pub own_schema: Option<Arc<LazySchema>>,
    /// The verbs that the resource supports, in the order of discovery.
    pub verbs: Vec<Verb>,
    /// Whether objects are stored, or the implementation that answers instead.
    pub backing: Backing,
    /// The storage path and encoding; unused when nothing is stored.
    pub storage: StorageLocation,
    /// Conversion between this version and the storage kind; `None` when they are the same.
    pub conversion: Option<Conversion>,
    /// Conversion between versions that are stored as written ([`StorageEncoding::AsWritten`]); `None` when there is
    /// only one version. With a converter, [`Resource::strategy`] sees objects of this resource's own version.
    pub converter: Option<Arc<dyn Converter>>,
    /// Other versions in which stored objects may be found. Set on the declaration of the storage version.
    pub stored_versions: Vec<StoredVersion>,
    /// The rules of the kind, on objects of the storage kind.
    pub strategy: Arc<dyn Strategy>,
    /// Converts objects of the storage kind (with a converter: of this version) to table rows.
    pub table: Arc<dyn TableConvertor>,
    /// Its subresources, in the order of discovery.
    pub subresources: Vec<Subresource>,
    /// The fields that `fieldSelector` supports besides name and namespace.
    pub selectable_fields: Vec<SelectableField>,
    /// Makes the message for an unsupported field selector of this resource, when the kind has its own text. A kind
    /// without that and without selectable fields supports `metadata.namespace` in every scope.
    pub unsupported_field: Option<fn(&Resource, &str) -> String>,
    /// Whether the kind is namespaced, but `fieldSelector` does not support `metadata.namespace`.
    pub lacks_namespace_field: bool,
    /// The feature gate without which the resource is not served in this version, whatever `--runtime-config` says.
    pub gate: Option<Gate>,
    /// The warning for every request to a deprecated resource.
    pub deprecation: Option<String>,
    /// Dotted paths of integers that are pointers in this version and plain numbers in the reference's internal
    /// version. In an object with no other content, such as that of a bookmark, they are zero.
    pub plain_integers: &'static [&'static str],
    /// Annotations in which this version keeps integers that are fields of the reference's internal version; zero in
    /// such an object.
    pub integer_annotations: &'static [&'static str],
    /// Whether the server decides requests by these objects as its watch cache has them. A write of one is then answered
    /// only when the cache has it (or, if it does not follow, after the time that a read waits for it), so that the write
    /// counts for every later request to this server.
    pub in_force_when_answered: bool,
}

impl Resource {
    /// An object of the kind without any content, as the reference has one before it reads it.
    pub fn empty_object(&self) -> Value {
        let mut object = json!({"kind": self.kind, "apiVersion": self.resource.group_version().to_string()});
        for path in self.plain_integers {
            object.set(path, 0);
        }
        for name in self.integer_annotations {
            object.object_at_mut("metadata.annotations").insert((*name).to_owned(), "0".into());
        }
        object
    }

    /// A stored resource of a built-in kind, with all verbs, no rules and the default table. `type_name` is the type in
    /// the schema; the storage path and the kind follow from the names.
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
            model: ObjectModel::BUILT_IN,
            type_name: type_name.to_owned(),
            own_schema: None,
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
            lacks_namespace_field: false,
            gate: None,
            deprecation: None,
            plain_integers: &[],
            integer_annotations: &[],
            in_force_when_answered: false,
        }
    }

    /// The group and the plural name.
    pub fn group_resource(&self) -> GroupResource {
        self.resource.group_resource()
    }

    /// The kind in this version.
    pub fn group_version_kind(&self) -> GroupVersionKind {
        self.resource.group_version().with_kind(self.kind.clone())
    }

    /// Whether the resource is namespaced.
    pub fn is_namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }

    /// Checks that an object of a namespaced resource is in the request's namespace, and sets an absent one. An object
    /// of another resource has no namespace afterwards, nor has one in a request with an empty namespace.
    ///
    /// # Errors
    /// A `BadRequest` when the object names another namespace.
    pub fn check_namespace(&self, object: &mut Value, namespace: &str) -> Result<(), Status> {
        if !self.is_namespaced() {
            object.remove_at("metadata.namespace");
            return Ok(());
        }
        match object.str_at("metadata.namespace") {
            own if own == namespace => {}
            // No object is stored so: its validation fails, or its key does.
            _ if namespace.is_empty() => {
                object.remove_at("metadata.namespace");
            }
            "" => object.set("metadata.namespace", namespace),
            _ => {
                return Err(Status::bad_request(
                    "the namespace of the provided object does not match the namespace sent on the request",
                ));
            }
        }
        Ok(())
    }

    /// Whether objects are stored. A resource without storage serves only the verbs it declares.
    pub fn is_stored(&self) -> bool {
        matches!(self.backing, Backing::Stored)
    }

    /// A subresource by name.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|subresource| subresource.name == name)
    }
}
