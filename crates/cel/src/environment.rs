//! Declares the names that expressions may use.

use crate::declarations::{Declarations, Library, Overload};
use crate::syntax::Dialect;
use crate::types::{ObjectTypes, Type, TypeProvider};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

/// Whether an expression is new or stored
/// (<https://kubernetes.io/docs/reference/using-api/cel/#kubernetes-cel-libraries>).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnvironmentType {
    /// The environment of expressions that a write adds or changes: the functions that all servers of the control plane
    /// understand, so that a server of the least compatible version can read what is stored.
    NewExpressions,
    /// The environment of stored expressions, and of those in configuration files: all functions.
    StoredExpressions,
}

impl EnvironmentType {
    /// The type for an expression of a write, which is `stored` if the object had it before.
    pub fn of(stored: bool) -> EnvironmentType {
        match stored {
            true => EnvironmentType::StoredExpressions,
            false => EnvironmentType::NewExpressions,
        }
    }
}

/// The variables, types and functions that expressions may use.
///
/// Functions are those of all of Kubernetes' libraries and are shared; an environment is cheap to make and to clone.
#[derive(Clone, Debug)]
pub struct Environment {
    declarations: Arc<Declarations>,
    /// The functions of libraries that few environments have.
    additional: Option<Arc<Declarations>>,
    has_bindings: bool,
    has_lists: bool,
    variables: HashMap<Box<str>, Type>,
    provider: Arc<dyn TypeProvider>,
}

impl Default for Environment {
    fn default() -> Environment {
        Environment::new()
    }
}

impl Environment {
    /// An environment without variables, for stored expressions.
    pub fn new() -> Environment {
        static NO_TYPES: LazyLock<Arc<ObjectTypes>> = LazyLock::new(Arc::default);
        Environment {
            declarations: Arc::clone(Declarations::kubernetes()),
            additional: None,
            has_bindings: false,
            has_lists: true,
            variables: HashMap::new(),
            provider: Arc::<ObjectTypes>::clone(&NO_TYPES),
        }
    }

    /// The same environment for expressions of this type. It concerns the libraries of [`Library::ALL`].
    #[must_use]
    pub fn of_type(mut self, environment_type: EnvironmentType) -> Environment {
        self.declarations = match environment_type {
            EnvironmentType::NewExpressions => Declarations::of_new_expressions(),
            EnvironmentType::StoredExpressions => Arc::clone(Declarations::kubernetes()),
        };
        self.has_lists = self.declarations.function("@sortByAssociatedKeys").is_some();
        self
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

    /// The macros of the libraries.
    pub(crate) fn dialect(&self) -> Dialect {
        Dialect::Extended { has_bindings: self.has_bindings, has_lists: self.has_lists }
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
    use pintle_feature_gates::{EffectiveVersion, FeatureGates, Gate, MinorVersion, testing::override_gates};

    #[test]
    fn new_expressions_have_the_functions_that_all_servers_understand() {
        let compiles = |expression: &str, environment_type| {
            let environment =
                Environment::new().with_variable("a", Type::list(Type::Int)).of_type(environment_type);
            let compiled = environment.compile(expression);
            compiled.map(|_| ()).map_err(|errors| errors.messages()[0].to_owned())
        };
        let undeclared = |name: &str| Err(format!("undeclared reference to '{name}' (in container '')"));
        let list_functions = [
            ("lists.range(3).size() == 3", "lists"),
            ("a.sortBy(x, -x)[0] > 0", "sortBy"),
            ("a.distinct().size() == 1", "distinct"),
        ];
        for (minor, has_lists) in [(33, false), (34, false), (35, true), (36, true)] {
            let gates = FeatureGates::new(EffectiveVersion::emulating(MinorVersion::new(1, minor)));
            let _gates = override_gates(&gates);
            for (expression, name) in list_functions {
                let expected = if has_lists { Ok(()) } else { undeclared(name) };
                assert_eq!(
                    compiles(expression, EnvironmentType::NewExpressions),
                    expected,
                    "1.{minor}: {expression}"
                );
                assert_eq!(compiles(expression, EnvironmentType::StoredExpressions), Ok(()), "{expression}");
            }
            for expression in ["semver('1.0.0').major() == 1", "a.all(i, v, v > i)", "a.sum() > 1"] {
                assert_eq!(compiles(expression, EnvironmentType::NewExpressions), Ok(()), "{expression}");
            }
        }
        let gates = FeatureGates::new(EffectiveVersion::emulating(MinorVersion::new(1, 33)));
        let _gates = override_gates(&gates.with(Gate::AuthorizeWithSelectors, false));
        let environment =
            Environment::new().with_variable("authorizer", crate::Authorization::authorizer_type());
        let expression = "authorizer.group('').resource('pods').fieldSelector('a=b').check('list').allowed()";
        let environment = environment.of_type(EnvironmentType::NewExpressions);
        assert!(environment.compile(expression).is_err());
        let environment = environment.of_type(EnvironmentType::StoredExpressions);
        assert!(environment.compile(expression).is_ok());
    }

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
