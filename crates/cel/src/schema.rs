//! The view that evaluation has of an object's schema.
//!
//! Objects are not copied for evaluation: a [`Value`](crate::Value) is a view of a JSON tree, and the schema determines
//! how each part is interpreted (a `date-time` string is a timestamp, a list of type `map` is compared by keys). The
//! trait keeps this crate independent of any particular form of schema.

use std::fmt;

/// A schema of a JSON value.
///
/// Names are as in JSON; callers undo the escaping of CEL identifiers
/// (<https://kubernetes.io/docs/reference/using-api/cel/#escaping>) before they call [`Schema::property`].
pub trait Schema: fmt::Debug + Send + Sync {
    /// The interpretation of the value.
    fn kind(&self) -> SchemaKind;

    /// Whether `null` is allowed.
    fn nullable(&self) -> bool;

    /// The schema of a member: of declared properties for [`SchemaKind::Object`], of any key for [`SchemaKind::Map`].
    /// Members without a schema are invisible to expressions, but take part in the comparison of whole objects.
    fn property(&self, name: &str) -> Option<&dyn Schema>;

    /// The schema of a list's items.
    fn items(&self) -> Option<&dyn Schema>;

    /// The list type of a list.
    fn list_type(&self) -> ListType<'_>;
}

/// The interpretation of a JSON value in expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaKind {
    /// An object with declared properties: selected by field, a member that is `null` counts as absent.
    Object,
    /// A map from strings to values that share a schema.
    Map,
    /// A list.
    Array,
    /// A string without a relevant format.
    String,
    /// A string of format `duration`.
    Duration,
    /// A string of format `date`.
    Date,
    /// A string of format `date-time`.
    DateTime,
    /// A string of format `byte`: base64.
    Byte,
    /// A number, whole or not: a `double`.
    Number,
    /// A whole number.
    Integer,
    /// A boolean.
    Boolean,
    /// An integer or a string (`x-kubernetes-int-or-string`).
    IntOrString,
    /// A value of any type without a schema (`x-kubernetes-preserve-unknown-fields` without a type); it can only be
    /// compared.
    Unknown,
}

/// The list type (`x-kubernetes-list-type`), which determines the meaning of `==` and `+`:
/// <https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy>.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListType<'a> {
    /// Items are identified by position.
    Atomic,
    /// Items are identified by value.
    Set,
    /// Items are identified by these members.
    Map(&'a [String]),
}
