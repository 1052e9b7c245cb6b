//! Declares the names that expressions may use.

use crate::declarations::{Declarations, Library, Overload};
use crate::syntax::Dialect;
use crate::types::{ObjectTypes, Type, TypeProvider};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

/// The variables, types and functions that expressions may use.
///
/// Functions are those of all of Kubernetes' libraries and are shared; an environment is cheap to make and to clone.
#[derive(Clone, Debug)]
pub struct Environment {
    declarations: Arc<Declarations>,
    /// The functions of libraries that few environments have.
    additional: Option<Arc<Declarations>>,
    has_bindings: bool,
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
            additional: None,
            has_bindings: false,
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

    /// Adds a library to those of [`Library::ALL`].
    #[must_use]
    pub fn with_library(mut self, library: Library) -> Environment {
        self.has_bindings |= library == Library::Bindings;
        let mut additional = self.additional.map(Arc::unwrap_or_clone).unwrap_or_default();
        additional.add(library);
        self.additional = Some(Arc::new(additional));
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
        let name = name.strip_prefix('.').unwrap_or(name);
        self.declarations
            .function(name)
            .or_else(|| self.additional.as_deref().and_then(|additional| additional.function(name)))
    }

    /// Whether `cel.bind` is a macro.
    pub(crate) fn dialect(&self) -> Dialect {
        Dialect::Extended { has_bindings: self.has_bindings }
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
            "optional_type" | "net.IP" | "net.CIDR" => Type::opaque(name),
            _ if self.provider.has_type(name) => Type::object(name),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cel_bind_is_a_macro_only_with_its_library() {
        let environment = Environment::new().with_variable("a", Type::map(Type::String, Type::Int));
        let expression = "cel.bind(x, a['b'], x + x > 1)";
        let errors = environment.compile(expression).expect_err("there is no such function");
        assert_eq!(errors.messages()[0], "undeclared reference to 'cel' (in container '')");
        let environment = environment.with_library(Library::Bindings);
        assert_eq!(*environment.compile(expression).expect("it compiles").result_type(), Type::Bool);
        for (expression, expected) in [
            ("cel.bind(x.y, 1, true)", "cel.bind() variable names must be simple identifiers"),
            ("a.bind(x, 1, true)", "undeclared reference to 'bind' (in container '')"),
        ] {
            let errors = environment.compile(expression).expect_err(expression);
            assert_eq!(errors.messages()[0], expected, "{expression}");
        }
    }
}
