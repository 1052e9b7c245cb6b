//! The Common Expression Language (CEL) as Kubernetes has it.

mod escaping;
mod evaluation_error;
mod functions;
mod interpreter;
pub mod pattern;
mod schema;
mod value;

pub use escaping::{escape, unescape};
pub use evaluation_error::EvaluationError;
pub use functions::{Cidr, NamedFormat, Semver, Url};
pub use interpreter::Activation;
pub use schema::{ListType, Schema, SchemaKind};
pub use value::{List, Map, Opaque, Text, Timestamp, Value};
