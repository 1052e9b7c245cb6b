//! Declares the names that expressions may use.

use crate::declarations::{Declarations, Overload};
use crate::types::{ObjectTypes, Type, TypeProvider};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

/// The variables, types and functions that expressions may use.
///
/// Functions are those of all of Kubernetes' libraries and are shared; an environment is cheap to make and to clone.
#[derive(Clone, Debug)]
pub struct Environment {
    declarations: Arc<Declarations>,
    variables: HashMap<Box<str>, Type>,
    provider: Arc<dyn TypeProvider>,
}

impl Default for Environment {
    fn default() -> Environment {
        Environment::new()
    }
}

impl Environment {
    /// An environment without variables.
    pub fn new() -> Environment {
        static NO_TYPES: LazyLock<Arc<ObjectTypes>> = LazyLock::new(Arc::default);
        Environment {
            declarations: Arc::clone(Declarations::kubernetes()),
            variables: HashMap::new(),
            provider: Arc::<ObjectTypes>::clone(&NO_TYPES),
        }
    }

    /// Declares a variable.
    #[must_use]
    pub fn with_variable(mut self, name: &str, of_variable: Type) -> Environment {
        self.variables.insert(name.into(), of_variable);
        self
    }

    /// Declares the fields of the object types among the variables' types.
    #[must_use]
    pub fn with_types(mut self, provider: Arc<dyn TypeProvider>) -> Environment {
        self.provider = provider;
        self
    }

    pub(crate) fn variable(&self, name: &str) -> Option<&Type> {
        self.variables.get(name)
    }

    pub(crate) fn function(&self, name: &str) -> Option<(&'static str, &[Overload])> {
        self.declarations.function(name.strip_prefix('.').unwrap_or(name))
    }

    pub(crate) fn provider(&self) -> &dyn TypeProvider {
        &*self.provider
    }

    /// The type with this name.
    pub(crate) fn type_named(&self, name: &str) -> Option<Type> {
        let parameter = || Type::Parameter("A".into());
        Some(match name {
            "bool" => Type::Bool,
            "bytes" => Type::Bytes,
            "double" => Type::Double,
            "google.protobuf.Duration" => Type::Duration,
            "google.protobuf.Timestamp" => Type::Timestamp,
            "int" => Type::Int,
            "list" => Type::list(parameter()),
            "map" => Type::map(parameter(), Type::Parameter("B".into())),
            "null_type" => Type::Null,
            "string" => Type::String,
            "type" => Type::Type(None),
            "uint" => Type::Uint,
            "optional_type" => Type::optional(Type::Parameter("V".into())),
            "net.IP" | "net.CIDR" => Type::opaque(name),
            _ if self.provider.has_type(name) => Type::object(name),
            _ => return None,
        })
    }
}
