//! Compiles expressions.

use crate::{
    CompileError, Expression, Variable, VariableSet,
    types::{AdmissionTypes, NAMESPACE, REQUEST, VARIABLES, VARIABLES_NAME},
};
use pintle_cel::{
    Authorization, Environment, EnvironmentType, Program, Stage,
    declarations::Library,
    mutation::{self, MutationTypes},
    types::{Type, TypeProvider},
};
use std::{
    collections::HashMap,
    sync::{Arc, LazyLock},
};

/// The variables that not all expressions have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OptionalVariables {
    /// Whether there is `params`, which may be null.
    pub params: bool,
    /// Whether there are `authorizer` and `authorizer.requestResource`.
    pub authorizer: bool,
}

/// The types that an expression may evaluate to.
#[derive(Clone, Copy, Debug)]
pub enum Returns<'a> {
    /// Any type.
    Anything,
    /// One of these, exactly: `dyn` is none of the others.
    OneOf(&'a [Type]),
}

impl Returns<'static> {
    /// `bool`
    pub const BOOL: Returns<'static> = Returns::OneOf(&[Type::Bool]);
    /// `string`
    pub const STRING: Returns<'static> = Returns::OneOf(&[Type::String]);
    /// `string` or `null`
    pub const STRING_OR_NULL: Returns<'static> = Returns::OneOf(&[Type::String, Type::Null]);

    /// `Object`, the type of configurations in mutations.
    pub fn configuration() -> Returns<'static> {
        static OBJECT: LazyLock<[Type; 1]> = LazyLock::new(|| [Type::object(mutation::OBJECT)]);
        Returns::OneOf(&*OBJECT)
    }

    /// `list(JSONPatch)`
    pub fn json_patch() -> Returns<'static> {
        static OPERATIONS: LazyLock<[Type; 1]> =
            LazyLock::new(|| [Type::list(Type::object(mutation::JSON_PATCH))]);
        Returns::OneOf(&*OPERATIONS)
    }
}

/// Compiles the expressions of one policy or webhook.
#[derive(Debug)]
pub struct Compiler {
    /// Shared with the environment of an expression while it is compiled: a policy may have very many variables.
    types: Arc<AdmissionTypes>,
    /// By name: an upper bound of the recursion of a variable's evaluation.
    nesting: HashMap<Box<str>, usize>,
}

impl Compiler {
    /// A compiler without `variables`.
    pub fn new() -> Compiler {
        Compiler { types: Arc::default(), nesting: HashMap::new() }
    }

    /// A compiler that declares `variables`, without any field yet.
    pub fn with_variables() -> Compiler {
        let types = AdmissionTypes { variables: Some(HashMap::new()), others: None };
        Compiler { types: Arc::new(types), nesting: HashMap::new() }
    }

    /// Adds types that expressions may name and construct.
    #[must_use]
    pub fn with_types(mut self, types: Arc<dyn TypeProvider>) -> Compiler {
        Arc::make_mut(&mut self.types).others = Some(types);
        self
    }

    /// Compiles an expression.
    pub fn compile(
        &self,
        source: &str,
        environment_type: EnvironmentType,
        optional: OptionalVariables,
        returns: Returns<'_>,
    ) -> Expression {
        self.compile_in(&self.environment(environment_type, optional), source, returns)
    }

    /// As [`Compiler::compile`], for the expression of a mutation, which may construct objects and operations of JSON
    /// patches.
    pub fn compile_mutation(
        &self,
        source: &str,
        environment_type: EnvironmentType,
        optional: OptionalVariables,
        returns: Returns<'_>,
    ) -> Expression {
        let environment = self
            .environment(environment_type, optional)
            .with_types(Arc::new(MutationTypes::new(self.types.clone())))
            .with_library(Library::JsonPatch);
        self.compile_in(&environment, source, returns)
    }

    fn compile_in(&self, environment: &Environment, source: &str, returns: Returns<'_>) -> Expression {
        let compiled = program(environment, source, returns);
        let nesting = compiled.as_ref().map_or(0, |program| self.nesting_of(program));
        Expression::new(source, compiled, nesting)
    }

    /// Compiles one of `variables`, and declares it for the expressions that are compiled afterwards, with the type of
    /// its result; with `dyn` if it does not compile.
    pub fn compile_variable(
        &mut self,
        name: &str,
        source: &str,
        environment_type: EnvironmentType,
        optional: OptionalVariables,
    ) -> Expression {
        let expression = self.compile(source, environment_type, optional, Returns::Anything);
        let of_result = expression.result_type().map_or(Type::Dyn, of_variable);
        let types = Arc::make_mut(&mut self.types);
        types.variables.get_or_insert_default().insert(name.into(), of_result);
        let nesting = self.nesting.get(name).copied().unwrap_or_default();
        self.nesting.insert(name.into(), nesting + expression.nesting());
        expression
    }

    /// As [`Compiler::compile_variable`], for all variables of a stored policy by name and expression.
    pub fn compile_variables<'v>(
        &mut self,
        variables: impl IntoIterator<Item = (&'v str, &'v str)>,
        optional: OptionalVariables,
    ) -> VariableSet {
        let compiled = variables.into_iter().map(|(name, source)| Variable {
            name: name.into(),
            expression: self.compile_variable(name, source, EnvironmentType::StoredExpressions, optional),
        });
        VariableSet::new(compiled.collect())
    }

    fn environment(&self, environment_type: EnvironmentType, optional: OptionalVariables) -> Environment {
        static COMMON: LazyLock<Environment> = LazyLock::new(|| {
            Environment::new()
                .with_variable("object", Type::Dyn)
                .with_variable("oldObject", Type::Dyn)
                .with_variable("namespaceObject", Type::object(NAMESPACE))
                .with_variable("request", Type::object(REQUEST))
        });
        let mut environment = COMMON.clone().of_type(environment_type).with_types(self.types.clone());
        if optional.params {
            environment = environment.with_variable("params", Type::Dyn);
        }
        if optional.authorizer {
            environment = environment
                .with_variable("authorizer", Authorization::authorizer_type())
                .with_variable("authorizer.requestResource", Authorization::request_resource_type());
        }
        if self.types.variables.is_some() {
            environment = environment.with_variable(VARIABLES_NAME, Type::object(VARIABLES));
        }
        environment
    }

    /// The nesting of an expression together with that of the variables it reads.
    fn nesting_of(&self, program: &Program) -> usize {
        let fields = program.ast().fields_of(VARIABLES_NAME);
        let of_variables = fields.into_iter().filter_map(|name| self.nesting.get(name)).max();
        program.nesting() + of_variables.copied().unwrap_or_default()
    }
}

impl Default for Compiler {
    fn default() -> Compiler {
        Compiler::new()
    }
}

fn program(environment: &Environment, source: &str, returns: Returns<'_>) -> Result<Program, CompileError> {
    match environment.compile(source) {
        Ok(program) => {
            check_type(program.result_type(), returns)?;
            Ok(program)
        }
        Err(errors) => {
            // A wrong type is told before an instantiation that fails.
            errors.result_type().map_or(Ok(()), |found| check_type(found, returns))?;
            Err(match errors.stage() {
                Stage::Compilation => CompileError::Invalid(format!("compilation failed: {errors}").into()),
                Stage::Instantiation => {
                    CompileError::Internal(format!("program instantiation failed: {errors}").into())
                }
            })
        }
    }
}

fn check_type(found: &Type, returns: Returns<'_>) -> Result<(), CompileError> {
    let Returns::OneOf(allowed) = returns else { return Ok(()) };
    if allowed.contains(found) {
        return Ok(());
    }
    let detail = match allowed {
        [only] => format!("must evaluate to {} but got {}", only.declared(), found.declared()),
        all => {
            let all: Vec<String> = all.iter().map(|one| one.declared().to_string()).collect();
            format!("must evaluate to one of [{}] but got {}", all.join(" "), found.declared())
        }
    };
    Err(CompileError::Invalid(detail.into()))
}

/// The type of a variable with a result of this type: types with fields, and those of libraries, become `dyn`.
fn of_variable(of_result: &Type) -> Type {
    match of_result {
        Type::Bool
        | Type::Bytes
        | Type::Double
        | Type::Duration
        | Type::Int
        | Type::Null
        | Type::String
        | Type::Timestamp
        | Type::Uint => of_result.clone(),
        Type::List(element) => Type::list(of_variable(element)),
        Type::Map(entry) => Type::map(of_variable(&entry.0), of_variable(&entry.1)),
        _ => Type::Dyn,
    }
}
