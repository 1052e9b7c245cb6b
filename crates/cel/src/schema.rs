//! What evaluation has to know of an object's schema.
//!
//! Objects are not copied to be evaluated: a [`Value`](crate::Value) is a view on a JSON tree, and the schema says how
//! each part of the tree is to be seen (a `date-time` string is a timestamp, a list of type `map` is compared by keys).
//! The trait keeps this crate free of any particular form of schema.

use std::fmt;

/// A schema of a JSON value, as evaluation sees it.
///
/// Names are as in JSON; the escaping that makes them CEL identifiers
/// (<https://kubernetes.io/docs/reference/using-api/cel/#escaping>) is undone before [`Schema::property`] is asked.
pub trait Schema: fmt::Debug + Send + Sync {
    /// How the value is seen.
    fn kind(&self) -> SchemaKind;

    /// Whether `null` is a value of this schema.
    fn nullable(&self) -> bool;

    /// The schema of a member: of declared properties for [`SchemaKind::Object`], of any key for [`SchemaKind::Map`].
    /// Members without one cannot be seen by expressions, but take part in the comparison of whole objects.
    fn property(&self, name: &str) -> Option<&dyn Schema>;

    /// The schema of a list's items.
    fn items(&self) -> Option<&dyn Schema>;

    /// How a list's items are identified.
    fn list_type(&self) -> ListType<'_>;
}

/// How a JSON value is seen by expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaKind {
    /// An object with declared properties: selected by field, a member that is `null` counts as absent.
    Object,
    /// A map from strings to values that share a schema.
    Map,
    /// A list.
    Array,
    /// A string without a format that matters here.
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
    /// Anything, of which nothing is known (`x-kubernetes-preserve-unknown-fields` without a type); it can only be
    /// compared.
    Unknown,
}

/// How the items of a list are identified (`x-kubernetes-list-type`), which decides what `==` and `+` mean:
/// <https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy>.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListType<'a> {
    /// By position.
    Atomic,
    /// Each item stands for itself.
    Set,
    /// By these members.
    Map(&'a [String]),
}
