//! Declares the names that expressions may use, and compiles expressions.

use crate::compile_error::CompileErrors;
use crate::declarations::{Declarations, Overload};
use crate::program::Program;
use crate::source::Source;
use crate::stack::{is_deep, with_room};
use crate::types::{ObjectTypes, Type, TypeProvider};
use crate::{checker, syntax};
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

    /// Parses, checks and plans an expression.
    ///
    /// # Errors
    /// All errors of the expression, in the form that clients see.
    pub fn compile(&self, source: &str) -> Result<Program, CompileErrors> {
        let deep = is_deep(source);
        with_room(deep, || self.compile_here(source, deep))
            .unwrap_or_else(|error| Err(CompileErrors::instantiation(error.to_string())))
    }

    fn compile_here(&self, source: &str, deep: bool) -> Result<Program, CompileErrors> {
        let source = Source::new(source);
        let ast = syntax::parse(&source).map_err(|issues| source.report(issues))?;
        let checked = checker::check(ast, self, &source).map_err(|issues| source.report(issues))?;
        Program::new(checked, deep).map_err(CompileErrors::instantiation)
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
