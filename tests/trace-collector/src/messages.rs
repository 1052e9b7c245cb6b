//! The messages of the protocol, as far as tests read them.

/// A request of an exporter.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Export {
    /// The field of the protocol with this tag.
    #[prost(message, repeated, tag = "1")]
    pub resources: Vec<OfResource>,
}
/// The spans of a process.
#[derive(Clone, PartialEq, prost::Message)]
pub struct OfResource {
    /// The field of the protocol with this tag.
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    /// The field of the protocol with this tag.
    #[prost(message, repeated, tag = "2")]
    pub scopes: Vec<OfScope>,
}
/// A process.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Resource {
    /// The field of the protocol with this tag.
    #[prost(message, repeated, tag = "1")]
    pub attributes: Vec<Attribute>,
}
/// The spans of a library.
#[derive(Clone, PartialEq, prost::Message)]
pub struct OfScope {
    /// The field of the protocol with this tag.
    #[prost(message, repeated, tag = "2")]
    pub spans: Vec<Span>,
}
/// A span.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Span {
    /// The field of the protocol with this tag.
    #[prost(bytes = "vec", tag = "1")]
    pub trace: Vec<u8>,
    /// The field of the protocol with this tag.
    #[prost(bytes = "vec", tag = "2")]
    pub id: Vec<u8>,
    /// The field of the protocol with this tag.
    #[prost(bytes = "vec", tag = "4")]
    pub parent: Vec<u8>,
    /// The field of the protocol with this tag.
    #[prost(string, tag = "5")]
    pub name: String,
    /// The field of the protocol with this tag.
    #[prost(int32, tag = "6")]
    pub kind: i32,
    /// The field of the protocol with this tag.
    #[prost(fixed64, tag = "7")]
    pub start: u64,
    /// The field of the protocol with this tag.
    #[prost(fixed64, tag = "8")]
    pub end: u64,
    /// The field of the protocol with this tag.
    #[prost(message, repeated, tag = "9")]
    pub attributes: Vec<Attribute>,
    /// The field of the protocol with this tag.
    #[prost(message, repeated, tag = "11")]
    pub events: Vec<Event>,
    /// The field of the protocol with this tag.
    #[prost(message, repeated, tag = "13")]
    pub links: Vec<Link>,
    /// The field of the protocol with this tag.
    #[prost(message, optional, tag = "15")]
    pub status: Option<SpanStatus>,
}
/// An event in a span.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Event {
    /// The field of the protocol with this tag.
    #[prost(string, tag = "2")]
    pub name: String,
    /// The field of the protocol with this tag.
    #[prost(message, repeated, tag = "3")]
    pub attributes: Vec<Attribute>,
}
/// A reference to a span.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Link {
    /// The field of the protocol with this tag.
    #[prost(bytes = "vec", tag = "1")]
    pub trace: Vec<u8>,
}
/// The status of a span.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SpanStatus {
    /// The field of the protocol with this tag.
    #[prost(string, tag = "2")]
    pub message: String,
    /// The field of the protocol with this tag.
    #[prost(int32, tag = "3")]
    pub code: i32,
}
/// An attribute.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Attribute {
    /// The field of the protocol with this tag.
    #[prost(string, tag = "1")]
    pub key: String,
    /// The field of the protocol with this tag.
    #[prost(message, optional, tag = "2")]
    pub value: Option<Value>,
}
/// The value of an attribute.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Value {
    /// The field of the protocol with this tag.
    #[prost(string, tag = "1")]
    pub text: String,
    /// The field of the protocol with this tag.
    #[prost(int64, tag = "3")]
    pub integer: i64,
}
/// The answer.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Exported {}
