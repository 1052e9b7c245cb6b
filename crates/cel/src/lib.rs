//! The Common Expression Language (CEL) as Kubernetes uses it.
//!
//! The language is <https://github.com/google/cel-spec>; Kubernetes' additions and settings are in
//! <https://kubernetes.io/docs/reference/using-api/cel/>. The crate handles expressions, types and JSON values; it
//! knows no HTTP, no disk and no kind of object by name.
//!
//! ```
//! use pintle_cel::types::Type;
//! use pintle_cel::{Activation, Environment, Value};
//!
//! let environment = Environment::new().with_variable("self", Type::list(Type::Int));
//! let program = environment.compile("self.all(x, x > 0)").expect("it compiles");
//! assert_eq!(*program.result_type(), Type::Bool);
//!
//! let object = pintle_machinery::json!([1, 2, 0]);
//! let activation = Activation::new().with("self", Value::from_json(&object));
//! let mut budget = 1_000;
//! let value = program.evaluate(&activation, &mut budget).expect("it evaluates");
//! assert_eq!(value.as_bool(), Some(false));
//!
//! let errors = environment.compile("self > 0").expect_err("a list is no number");
//! assert!(errors.to_string().starts_with("ERROR: <input>:1:6: found no matching overload for '_>_'"));
//! ```

pub mod ast;
pub mod declarations;
pub mod estimate;
pub mod mutation;
pub mod pattern;
pub mod types;

mod authorizer;
mod checker;
mod compile;
mod compile_error;
mod environment;
mod escaping;
mod evaluation_error;
mod functions;
mod interpreter;
mod issue;
mod parse;
mod program;
mod schema;
mod source;
mod stack;
mod syntax;
mod value;
mod work;

pub use authorizer::{
    Authority, Authorization, AuthorizationCheck, AuthorizationDecision, CheckTarget, ResourceCheck,
};
pub use compile_error::{CompileErrors, Stage};
pub use environment::{Environment, EnvironmentType};
pub use escaping::{escape, is_identifier, unescape};
pub use evaluation_error::EvaluationError;
pub use functions::{NamedFormat, Semver};
pub use interpreter::Activation;
pub use parse::read_plain;
pub use program::Program;
pub use schema::{ListType, Schema, SchemaKind};
pub use stack::with_room_for;
pub use value::{LazyFields, List, Map, Object, Opaque, Text, Timestamp, Value};
pub use work::WorkLimit;
