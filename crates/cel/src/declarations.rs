//! Declares the functions: names, overloads, signatures.
//!
//! The tables are facts: overload ids and signatures are those of cel-go's standard library and extensions
//! (<https://github.com/google/cel-go>) and of Kubernetes' libraries
//! (<https://kubernetes.io/docs/reference/using-api/cel/#kubernetes-cel-libraries>). Costs and checked trees refer to
//! overloads by id, and the order of a function's overloads determines types where an argument is `dyn`.

mod extensions;
mod kubernetes;
mod standard;
mod table;

use crate::types::{Type, split_arguments};
use pintle_feature_gates::{Gate, MinorVersion, enabled, min_compatibility};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use table::Table;

/// A group of functions and macros that is enabled as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Library {
    /// The functions of the language itself.
    Standard,
    /// Kubernetes' `url()` and related functions.
    Urls,
    /// Kubernetes' `find` and `findAll`.
    Regex,
    /// Kubernetes' `isSorted`, `sum`, `min`, `max`, `indexOf`, `lastIndexOf`.
    KubernetesLists,
    /// `authorizer` and its methods. An environment declares the variable itself.
    Authorizer,
    /// Optionals and their syntax (version 2 of the library).
    Optionals,
    /// Kubernetes' `quantity()` and related functions.
    Quantity,
    /// String functions (version 2 of the library).
    Strings,
    /// `sets.contains` and related functions.
    Sets,
    /// `ip()` and related functions.
    Ip,
    /// `cidr()` and related functions.
    Cidr,
    /// Named formats.
    Format,
    /// Selectors on the authorizer.
    AuthorizerSelectors,
    /// Macros with two variables.
    TwoVariableComprehensions,
    /// `semver()` and related functions (version 1 of the library).
    Semver,
    /// List functions (version 3 of the library).
    Lists,
    /// `cel.bind`, a macro without a function; only device selectors have it.
    Bindings,
    /// `jsonpatch.escapeKey`; only mutations have it.
    JsonPatch,
    /// `includes`; only selectors of devices whose attributes may be lists have it.
    DeviceAttributes,
}

impl Library {
    /// The libraries of every environment, in the order in which Kubernetes v1.36 enables them;
    /// <https://kubernetes.io/docs/reference/using-api/cel/> lists the minor version that introduced each.
    pub const ALL: &[Library] = &[
        Library::Standard,
        Library::Urls,
        Library::Regex,
        Library::KubernetesLists,
        Library::Authorizer,
        Library::Optionals,
        Library::Quantity,
        Library::Strings,
        Library::Sets,
        Library::Ip,
        Library::Cidr,
        Library::Format,
        Library::AuthorizerSelectors,
        Library::TwoVariableComprehensions,
        Library::Semver,
        Library::Lists,
    ];

    /// The version that introduced the library; 1.0 for those that there always were.
    fn introduced(self) -> MinorVersion {
        let minor = match self {
            Library::Standard | Library::Urls | Library::Regex | Library::KubernetesLists => 0,
            Library::Authorizer => 27,
            Library::Optionals | Library::Quantity => 28,
            Library::Strings | Library::Sets => 29,
            Library::Ip | Library::Cidr => 30,
            Library::Format | Library::AuthorizerSelectors | Library::Bindings => 31,
            Library::TwoVariableComprehensions | Library::JsonPatch => 32,
            Library::Semver => 33,
            Library::Lists => 34,
            Library::DeviceAttributes => 36,
        };
        MinorVersion::new(1, minor)
    }

    /// Whether new expressions may use the library: all servers of the control plane understand it, or its gate, which
    /// has precedence, is open. Stored expressions may use every library.
    fn is_for_new_expressions(self) -> bool {
        match self {
            Library::AuthorizerSelectors => enabled(Gate::AuthorizeWithSelectors),
            _ => self.introduced() <= min_compatibility(),
        }
    }

    fn table(self) -> Table {
        match self {
            Library::Standard => standard::FUNCTIONS,
            Library::Optionals => extensions::OPTIONALS,
            Library::Strings => extensions::STRINGS,
            Library::Sets => extensions::SETS,
            Library::TwoVariableComprehensions => extensions::TWO_VARIABLE_COMPREHENSIONS,
            Library::Lists => extensions::LISTS,
            Library::Urls => kubernetes::URLS,
            Library::Regex => kubernetes::REGEX,
            Library::KubernetesLists => kubernetes::LISTS,
            Library::Authorizer => kubernetes::AUTHORIZER,
            Library::AuthorizerSelectors => kubernetes::AUTHORIZER_SELECTORS,
            Library::Quantity => kubernetes::QUANTITY,
            Library::Ip => kubernetes::IP,
            Library::Cidr => kubernetes::CIDR,
            Library::Format => kubernetes::FORMAT,
            Library::Semver => kubernetes::SEMVER,
            Library::JsonPatch => kubernetes::JSON_PATCH,
            Library::DeviceAttributes => kubernetes::DEVICE_ATTRIBUTES,
            Library::Bindings => &[],
        }
    }
}

/// A signature of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Overload {
    /// The id, unique among all overloads.
    pub id: &'static str,
    /// Whether it is a method, whose target is the first argument.
    pub member: bool,
    /// The types of the arguments.
    pub arguments: Vec<Type>,
    /// The type of the result.
    pub result: Type,
    /// The names of the type parameters in the signature.
    pub type_parameters: Vec<Arc<str>>,
}

impl Overload {
    fn parse(id: &'static str, signature: &str) -> Option<Overload> {
        let (call, result) = signature.split_once(" -> ")?;
        // A method's target ends at `.(`, which no type name contains.
        let (target, rest) = match call.split_once(".(") {
            Some((target, rest)) => (Some(Type::parse(target)?), rest),
            None => (None, call.strip_prefix('(')?),
        };
        let member = target.is_some();
        let rest = split_arguments(rest.strip_suffix(')')?);
        let arguments: Vec<_> =
            target.into_iter().map(Some).chain(rest.into_iter().map(Type::parse)).collect::<Option<_>>()?;
        let result = Type::parse(result)?;
        let mut type_parameters = Vec::new();
        arguments
            .iter()
            .chain([&result])
            .for_each(|argument| collect_parameters(argument, &mut type_parameters));
        Some(Overload { id, member, arguments, result, type_parameters })
    }
}

fn collect_parameters(argument: &Type, into: &mut Vec<Arc<str>>) {
    match argument {
        Type::Parameter(name) if !into.contains(name) => into.push(Arc::clone(name)),
        _ => argument.parameters().into_iter().for_each(|inner| collect_parameters(inner, into)),
    }
}

/// Functions by name.
#[derive(Clone, Debug, Default)]
pub struct Declarations {
    functions: HashMap<&'static str, Vec<Overload>>,
}

impl Declarations {
    /// The functions of some libraries. If several libraries have a function, its overloads have the libraries' order.
    pub fn new(libraries: &[Library]) -> Declarations {
        let mut declarations = Declarations::default();
        libraries.iter().for_each(|library| declarations.add(*library));
        declarations
    }

    pub(crate) fn add(&mut self, library: Library) {
        for (name, overloads) in library.table() {
            let known = self.functions.entry(name).or_default();
            for (id, signature) in *overloads {
                known.push(
                    Overload::parse(id, signature).expect("a test reads every signature of the tables"),
                );
            }
        }
    }

    /// The functions of all of Kubernetes' libraries, built once.
    pub fn kubernetes() -> &'static Arc<Declarations> {
        static KUBERNETES: LazyLock<Arc<Declarations>> =
            LazyLock::new(|| Arc::new(Declarations::new(Library::ALL)));
        &KUBERNETES
    }

    /// The functions of Kubernetes' libraries that new expressions may use.
    pub(crate) fn of_new_expressions() -> Arc<Declarations> {
        static BUILT: Mutex<Vec<(Vec<Library>, Arc<Declarations>)>> = Mutex::new(Vec::new());
        let libraries: Vec<Library> =
            Library::ALL.iter().copied().filter(|library| library.is_for_new_expressions()).collect();
        if libraries.len() == Library::ALL.len() {
            return Arc::clone(Declarations::kubernetes());
        }
        // A process has one version and one set of gates, and the tests few more.
        let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, declarations)) = built.iter().find(|(known, _)| *known == libraries) {
            return Arc::clone(declarations);
        }
        let declarations = Arc::new(Declarations::new(&libraries));
        built.push((libraries, Arc::clone(&declarations)));
        declarations
    }

    /// The overloads of a function; `None` if the function does not exist.
    pub fn function(&self, name: &str) -> Option<(&'static str, &[Overload])> {
        self.functions.get_key_value(name).map(|(name, overloads)| (*name, overloads.as_slice()))
    }

    /// All functions.
    pub fn functions(&self) -> impl Iterator<Item = (&'static str, &[Overload])> {
        self.functions.iter().map(|(name, overloads)| (*name, overloads.as_slice()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_signature_is_read_and_every_id_is_unique() {
        let declarations = Declarations::new(Library::ALL);
        let mut ids = HashSet::new();
        for (name, overloads) in declarations.functions() {
            for overload in overloads {
                assert!(ids.insert(overload.id), "{name}: {} is there twice", overload.id);
            }
        }
        for table in Library::ALL
            .iter()
            .chain(&[Library::JsonPatch, Library::DeviceAttributes])
            .map(|library| library.table())
        {
            for (id, signature) in table.iter().flat_map(|(_, overloads)| *overloads) {
                assert!(Overload::parse(id, signature).is_some(), "{id}: {signature}");
            }
        }
    }

    #[test]
    fn a_signature_is_read_with_its_target_and_parameters() {
        let overload = Overload::parse("x", "list(T).(map(K, T), int) -> optional(K)").unwrap();
        assert!(overload.member);
        assert_eq!(overload.arguments.len(), 3);
        assert_eq!(overload.result.to_string(), "optional_type(K)");
        assert_eq!(overload.type_parameters.iter().map(|name| &**name).collect::<Vec<_>>(), ["T", "K"]);
    }

    #[test]
    fn overloads_come_in_the_order_of_the_libraries() {
        let ids = |name| {
            Declarations::kubernetes().function(name).unwrap().1.iter().map(|o| o.id).collect::<Vec<_>>()
        };
        assert_eq!(
            ids("indexOf"),
            ["list_a_index_of_int", "string_index_of_string", "string_index_of_string_int"]
        );
        assert_eq!(ids("ip"), ["string_to_ip", "cidr_ip"]);
        assert_eq!(ids("isGreaterThan"), ["quantity_is_greater_than", "semver_is_greater_than"]);
    }
}
