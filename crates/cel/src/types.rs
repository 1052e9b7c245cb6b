//! The types of expressions in the checker.
//!
//! See <https://github.com/google/cel-spec/blob/master/doc/langdef.md#type-checking>. Types are cheap to clone.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// A type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Type {
    /// Known only at run time.
    Dyn,
    /// `google.protobuf.Any`: as [`Type::Dyn`], but macros cannot range over it.
    Any,
    /// The type of a rejected expression; it is compatible with every type, so that one error is reported once.
    Error,
    /// `bool`
    Bool,
    /// `int`
    Int,
    /// `uint`
    Uint,
    /// `double`
    Double,
    /// `string`
    String,
    /// `bytes`
    Bytes,
    /// `null`
    Null,
    /// `google.protobuf.Duration`
    Duration,
    /// `google.protobuf.Timestamp`
    Timestamp,
    /// A list with elements of a type.
    List(Arc<Type>),
    /// A map from a type to a type.
    Map(Arc<(Type, Type)>),
    /// A type with fields, provided by a [`TypeProvider`] under this name; Kubernetes' own `kubernetes.Quantity`,
    /// `kubernetes.URL`, `kubernetes.Semver` and `kubernetes.NamedFormat` are such types, without fields.
    Object(Arc<str>),
    /// A type known only by its name and parameters: `optional_type(int)`, `net.IP`, `net.CIDR`.
    Opaque(Arc<str>, Arc<[Type]>),
    /// The type of types, with the denoted type if known.
    Type(Option<Arc<Type>>),
    /// A parameter of a function's signature, or a type variable of the checker.
    Parameter(Arc<str>),
}

/// The name of the type of optionals.
pub const OPTIONAL: &str = "optional_type";

impl Type {
    /// `list(element)`
    pub fn list(element: Type) -> Type {
        Type::List(Arc::new(element))
    }

    /// `map(key, value)`
    pub fn map(key: Type, value: Type) -> Type {
        Type::Map(Arc::new((key, value)))
    }

    /// `optional_type(value)`
    pub fn optional(value: Type) -> Type {
        Type::Opaque(Arc::from(OPTIONAL), Arc::from([value]))
    }

    /// A type with fields.
    pub fn object(name: &str) -> Type {
        Type::Object(Arc::from(name))
    }

    /// A type of a name without parameters.
    pub fn opaque(name: &str) -> Type {
        Type::Opaque(Arc::from(name), Arc::from([]))
    }

    /// Whether values have any type, which is known only at run time.
    pub(crate) fn is_dynamic(&self) -> bool {
        matches!(self, Type::Dyn | Type::Any)
    }

    /// The value type of an optional.
    pub fn optional_value(&self) -> Option<&Type> {
        match self {
            Type::Opaque(name, parameters) if &**name == OPTIONAL => parameters.first(),
            _ => None,
        }
    }

    /// The name without parameters, as in expressions.
    pub fn name(&self) -> &str {
        match self {
            Type::Dyn => "dyn",
            Type::Any => "google.protobuf.Any",
            Type::Error => "error",
            Type::Bool => "bool",
            Type::Int => "int",
            Type::Uint => "uint",
            Type::Double => "double",
            Type::String => "string",
            Type::Bytes => "bytes",
            Type::Null => "null_type",
            Type::Duration => "google.protobuf.Duration",
            Type::Timestamp => "google.protobuf.Timestamp",
            Type::List(_) => "list",
            Type::Map(_) => "map",
            Type::Type(_) => "type",
            Type::Object(name) | Type::Opaque(name, _) | Type::Parameter(name) => name,
        }
    }

    /// The form in messages about the result of an expression, which name types as `type()` does (`null_type`).
    pub fn declared(&self) -> impl fmt::Display {
        struct Declared<'a>(&'a Type);
        impl fmt::Display for Declared<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.0.name())?;
                let parameters = self.0.parameters();
                for (index, parameter) in parameters.iter().enumerate() {
                    write!(f, "{}{}", if index == 0 { "(" } else { ", " }, Declared(parameter))?;
                }
                if parameters.is_empty() { Ok(()) } else { f.write_str(")") }
            }
        }
        Declared(self)
    }

    /// The type parameters, in order.
    pub(crate) fn parameters(&self) -> Vec<&Type> {
        match self {
            Type::List(element) => vec![element],
            Type::Map(entry) => vec![&entry.0, &entry.1],
            Type::Opaque(_, parameters) => parameters.iter().collect(),
            Type::Type(Some(parameter)) => vec![parameter],
            _ => Vec::new(),
        }
    }

    /// Parses a type in the syntax of signatures: `map(K, list(string))`. A single capital letter is a parameter, a
    /// name of the package `kubernetes` an object, any other name with a dot an opaque type.
    pub(crate) fn parse(text: &str) -> Option<Type> {
        let (head, arguments) = match text.strip_suffix(')') {
            Some(rest) => {
                let (head, inner) = rest.split_once('(')?;
                (head, split_arguments(inner).into_iter().map(Type::parse).collect::<Option<Vec<_>>>()?)
            }
            None => (text, Vec::new()),
        };
        let mut arguments = arguments.into_iter();
        let parsed = match head {
            "dyn" => Type::Dyn,
            "bool" => Type::Bool,
            "int" => Type::Int,
            "uint" => Type::Uint,
            "double" => Type::Double,
            "string" => Type::String,
            "bytes" => Type::Bytes,
            "duration" => Type::Duration,
            "timestamp" => Type::Timestamp,
            "list" => Type::list(arguments.next()?),
            "map" => Type::map(arguments.next()?, arguments.next()?),
            "optional" => Type::optional(arguments.next()?),
            "type" => Type::Type(Some(Arc::new(arguments.next()?))),
            name if name.starts_with("kubernetes.") => Type::object(name),
            name if name.contains('.') => Type::opaque(name),
            name if name.len() == 1 && name.starts_with(char::is_uppercase) => {
                Type::Parameter(Arc::from(name))
            }
            _ => return None,
        };
        arguments.next().is_none().then_some(parsed)
    }
}

/// Splits at the commas outside parentheses.
pub(crate) fn split_arguments(text: &str) -> Vec<&str> {
    let mut arguments = Vec::new();
    let (mut depth, mut start) = (0usize, 0);
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                arguments.extend(text.get(start..index));
                start = index + 1;
            }
            _ => {}
        }
    }
    arguments.extend(text.get(start..));
    arguments.into_iter().map(str::trim).filter(|argument| !argument.is_empty()).collect()
}

impl Type {
    /// The declared name: `null_type`, `list(google.protobuf.Duration)`. A few messages show it.
    pub fn declared_name(&self) -> String {
        let parameters: Vec<String> =
            self.parameters().iter().map(|parameter| parameter.declared_name()).collect();
        match parameters.is_empty() {
            true => self.name().to_owned(),
            false => format!("{}({})", self.name(), parameters.join(", ")),
        }
    }
}

/// The form in messages to clients.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Type::Error => "!error!",
            Type::Any => "any",
            Type::Null => "null",
            Type::Duration => "duration",
            Type::Timestamp => "timestamp",
            _ => self.name(),
        })?;
        let parameters = self.parameters();
        for (index, parameter) in parameters.iter().enumerate() {
            write!(f, "{}{parameter}", if index == 0 { "(" } else { ", " })?;
        }
        if parameters.is_empty() { Ok(()) } else { f.write_str(")") }
    }
}

/// Provides the object types of an environment's variables.
pub trait TypeProvider: fmt::Debug + Send + Sync {
    /// Whether a type of this name exists.
    fn has_type(&self, name: &str) -> bool;

    /// The type of a field by its escaped name; `None` if the type has no such field.
    fn field(&self, type_name: &str, field: &str) -> Option<Type>;

    /// Whether expressions may construct values of the type: `Name{field: value}`.
    fn is_constructible(&self, _type_name: &str) -> bool {
        false
    }
}

/// Explicitly listed types.
#[derive(Clone, Debug, Default)]
pub struct ObjectTypes(HashMap<Box<str>, HashMap<Box<str>, Type>>);

impl ObjectTypes {
    /// Adds a type.
    pub fn insert(&mut self, name: &str, fields: impl IntoIterator<Item = (Box<str>, Type)>) {
        self.0.insert(name.into(), fields.into_iter().collect());
    }
}

impl TypeProvider for ObjectTypes {
    fn has_type(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    fn field(&self, type_name: &str, field: &str) -> Option<Type> {
        self.0.get(type_name)?.get(field).cloned()
    }
}
