//! The object model of a resource: the properties in which built-in kinds and custom resources differ for clients.

/// How the objects of a resource are held and served. Code that serves objects asks for the property that it needs; it
/// never asks whether a resource is a custom one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectModel {
    /// The form in which Kubernetes holds the objects.
    pub form: ObjectForm,
    /// The way from a request to its verb.
    pub routing: Routing,
    /// The accepted formats of patches, in the order in which messages name them.
    pub patch_types: &'static [PatchType],
    /// Whether bodies and responses may be protobuf. Partial metadata, a built-in type, has that form in any case.
    pub protobuf: bool,
    /// Whether aggregated discovery names the group and version of the resource's own kind, which it otherwise omits.
    pub full_response_kind: bool,
}

/// The form in which Kubernetes holds objects. It shows in encoded objects, in lists and in messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectForm {
    /// A struct with declared fields, in their declared order.
    Struct,
    /// A map of JSON values, with sorted members (`unstructured.Unstructured`).
    Map,
}

/// The way from a request to its verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Routing {
    /// Each path and method is a route. A route exists for the paths and verbs of the declaration only, and checks the
    /// media types that the request names.
    Routes,
    /// One handler serves all paths, by the verb that authorization has checked.
    Verbs,
}

/// The formats of patches (<https://kubernetes.io/docs/reference/using-api/api-concepts/#patch-and-apply>).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchType {
    /// JSON patch (<https://www.rfc-editor.org/rfc/rfc6902>).
    Json,
    /// JSON merge patch (<https://www.rfc-editor.org/rfc/rfc7386>).
    Merge,
    /// Strategic merge patch, whose lists are merged by the keys that the schema of a struct names.
    StrategicMerge,
    /// An applied configuration, as YAML or JSON.
    Apply,
    /// An applied configuration in CBOR. Every resource that takes [`PatchType::Apply`] takes it if CBOR is served.
    ApplyCbor,
}

impl PatchType {
    /// The media type that selects the format.
    pub const fn media_type(self) -> &'static str {
        match self {
            PatchType::Json => "application/json-patch+json",
            PatchType::Merge => "application/merge-patch+json",
            PatchType::StrategicMerge => "application/strategic-merge-patch+json",
            PatchType::Apply => "application/apply-patch+yaml",
            PatchType::ApplyCbor => "application/apply-patch+cbor",
        }
    }
}

impl ObjectModel {
    /// The object model of built-in kinds.
    pub const BUILT_IN: ObjectModel = ObjectModel {
        form: ObjectForm::Struct,
        routing: Routing::Routes,
        patch_types: &[PatchType::Json, PatchType::Merge, PatchType::StrategicMerge, PatchType::Apply],
        protobuf: true,
        full_response_kind: false,
    };

    /// Whether an object in a body keeps the kind that it claims, which validation checks, and must claim one. The kind
    /// of a struct is that of the path: the decoder adds an absent one and rejects another.
    pub fn keeps_claimed_kind(&self) -> bool {
        self.form == ObjectForm::Map
    }

    /// Whether an object that admission has changed keeps unknown fields until it is stored. A struct has no place for
    /// them.
    pub fn keeps_unknown_fields(&self) -> bool {
        self.form == ObjectForm::Map
    }

    /// Whether a list has sorted members, and items with type metadata. Lists of structs have neither.
    pub fn lists_are_maps(&self) -> bool {
        self.form == ObjectForm::Map
    }

    /// Whether an empty list of managed fields in a body resets them. Metadata that is read from a map does not tell an
    /// empty list from an absent one.
    pub fn empty_managed_fields_reset(&self) -> bool {
        self.form == ObjectForm::Struct
    }
}
