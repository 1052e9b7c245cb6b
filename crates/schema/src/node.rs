//! Nodes of the arena: one for each type, and for each list or map of types.

use pintle_tree::Value;

/// Index of a node in its schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(crate) u32);

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// `true` or `false`.
    Bool,
    /// A 32 bit integer.
    Int32,
    /// A 64 bit integer.
    Int64,
    /// A double.
    Float64,
    /// Text; may carry the values of an enum.
    String,
    /// Bytes, base64 in JSON.
    Bytes,
    /// `metav1.Time`: RFC 3339 with seconds, in UTC.
    Time,
    /// `metav1.MicroTime`: RFC 3339 with six digits, in UTC.
    MicroTime,
    /// `metav1.Duration`: text such as `1h2m3s`.
    Duration,
    /// `resource.Quantity`: text such as `100m`.
    Quantity,
    /// `intstr.IntOrString`.
    IntOrString,
    /// `runtime.RawExtension`: any object, often with kind and apiVersion.
    RawExtension,
    /// `metav1.FieldsV1`: a set of field paths, as an object.
    FieldsV1,
    /// `apiextensions.JSON`: any JSON value, kept in one protobuf bytes field.
    Json,
    /// Any JSON value (`interface{}`), without a protobuf form.
    Any,
    /// Named fields.
    Struct,
    /// A list of one item type.
    List,
    /// A map from strings to one value type.
    Map,
    /// One of two shapes, distinguished by the JSON value itself.
    Union(Union),
}

impl Type {
    /// Whether the type is a struct in Go, which Go's encoder never counts as empty.
    pub fn is_go_struct(self) -> bool {
        match self {
            Self::Bool
            | Self::Int32
            | Self::Int64
            | Self::Float64
            | Self::String
            | Self::Bytes
            | Self::Any
            | Self::List
            | Self::Map => false,
            Self::Time
            | Self::MicroTime
            | Self::Duration
            | Self::Quantity
            | Self::IntOrString
            | Self::RawExtension
            | Self::FieldsV1
            | Self::Json
            | Self::Struct
            | Self::Union(_) => true,
        }
    }
}

/// The three two-shaped types of custom resource definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Union {
    /// A schema, or a list of schemas.
    SchemaOrArray,
    /// A schema, or a boolean.
    SchemaOrBool,
    /// A schema, or a list of strings.
    SchemaOrStringArray,
}

/// How server-side apply merges a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum ListType {
    /// Replaced as a whole.
    #[default]
    Atomic,
    /// Scalars without duplicates, each with its own owners.
    Set,
    /// Objects identified by their key fields.
    Map,
}

/// How server-side apply merges a map or a struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum MapType {
    /// Each key has its own owners.
    #[default]
    Granular,
    /// Replaced as a whole.
    Atomic,
}

/// Facts of a node that only structural schemas of custom resources have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Structural {
    /// `null` is an allowed value.
    pub nullable: bool,
    /// `x-kubernetes-preserve-unknown-fields`.
    pub preserve_unknown_fields: bool,
    /// `x-kubernetes-embedded-resource`.
    pub embedded_resource: bool,
    /// A string with a `format` other than `byte`; server-side apply treats it as any scalar.
    pub formatted: bool,
    /// A member that only `additionalProperties: true` allows. Pruning keeps nothing below it; server-side apply takes
    /// its type from the value.
    pub untyped: bool,
    /// The default for a missing list item or map value, or for a null that is not allowed.
    pub default: Option<Value>,
}

/// A piece of the schema's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Name {
    pub(crate) start: u32,
    pub(crate) len: u32,
}

/// A run of entries in one of the schema's side tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) start: u32,
    pub(crate) len: u32,
}

impl Run {
    pub(crate) fn of<T>(self, table: &[T]) -> &[T] {
        let start = self.start as usize;
        table.get(start..start + self.len as usize).unwrap_or(&[])
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) shape: Shape,
    /// The Go name without its package; empty for unnamed types.
    pub(crate) name: Name,
    /// Index into the schema's packages; meaningless for unnamed types.
    pub(crate) package: u16,
    pub(crate) map_type: MapType,
    /// Whether something at or below this node has a default.
    pub(crate) has_defaults: bool,
    /// The values of an enum of strings.
    pub(crate) values: Run,
    pub(crate) structural: Option<Box<Structural>>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    Scalar(Type),
    Struct {
        /// Range in `fields`, in declaration order.
        fields: Run,
        /// Range in `by_name`, sorted by name.
        by_name: Run,
        /// Range in `slots`; empty, or a power of two.
        slots: Run,
        /// Range in `always`: offsets of the fields that are written even if absent, in order.
        always: Run,
        /// Range in `members`, sorted by protobuf number.
        members: Run,
        /// Built from a Go struct, and therefore encoded in declaration order.
        declared: bool,
    },
    List {
        item: NodeId,
        list_type: ListType,
        /// Range in `names`.
        keys: Run,
        /// Whether the list type has a protobuf message of its own.
        wrapped: bool,
    },
    Map {
        key: NodeId,
        value: NodeId,
    },
    Union {
        union: Union,
        schema: NodeId,
        other: NodeId,
    },
    /// A node of the built-in schema, referenced from another schema.
    Builtin(NodeId),
    /// Reserved by a builder and not filled in yet.
    Reserved,
}
