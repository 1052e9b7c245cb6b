//! The Common Expression Language (CEL) as Kubernetes uses it.
//!
//! The language is <https://github.com/google/cel-spec>; what Kubernetes adds and sets is in
//! <https://kubernetes.io/docs/reference/using-api/cel/>. The crate knows expressions, types and JSON values; it knows
//! no HTTP, no disk and no kind of object by name.

pub mod ast;
pub mod declarations;
pub mod estimate;
pub mod pattern;
pub mod types;

mod escaping;
mod evaluation_error;
mod functions;
mod interpreter;
mod schema;
mod value;

pub use escaping::{escape, unescape};
pub use evaluation_error::EvaluationError;
pub use functions::{Cidr, NamedFormat, Semver, Url};
pub use interpreter::Activation;
pub use schema::{ListType, Schema, SchemaKind};
pub use value::{List, Map, Opaque, Text, Timestamp, Value};
