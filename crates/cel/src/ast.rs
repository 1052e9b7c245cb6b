//! The syntax tree of an expression.
//!
//! Each node has an id. Facts about a node beside its shape (position in the source, type, resolved overload) are in
//! tables by id, so that checking does not change the tree. The parser expands macros: the tree holds their expansions
//! (<https://github.com/google/cel-spec/blob/master/doc/langdef.md#macros>).
//!
//! The parser bounds the depth of a tree, so recursion over a tree needs no further limit.

use crate::types::Type;

/// Identifies a node within its tree. Ids are small and dense, and start at 1.
pub type ExprId = u32;

/// A node.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// The node's id.
    pub id: ExprId,
    /// The kind of the node, with its children.
    pub kind: ExprKind,
}

/// The kinds of nodes.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ExprKind {
    /// A placeholder for a syntax error. No checked tree has one.
    Unspecified,
    /// A constant.
    Literal(Literal),
    /// A variable, or the name of a type. In a checked tree it may be qualified (`google.protobuf.Timestamp`).
    Ident(Box<str>),
    /// `operand.field`, or `has(operand.field)`.
    Select(Select),
    /// A call of a function, method or operator (see [`operators`]). In a checked tree a call of a namespaced function
    /// (`ip.isCanonical('::1')`) has no target and the whole name.
    Call(Call),
    /// `[1, 2]`
    List(List),
    /// `{'key': 'value'}`
    Map(Vec<MapEntry>),
    /// `TypeName{field: value}`
    Struct(Struct),
    /// A fold, the expansion of most macros.
    Comprehension(Box<Comprehension>),
}

/// A constant.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Literal {
    /// `null`
    Null,
    /// `true`
    Bool(bool),
    /// `1`
    Int(i64),
    /// `1u`
    Uint(u64),
    /// `1.0`
    Double(f64),
    /// `'text'`
    String(Box<str>),
    /// `b'text'`
    Bytes(Box<[u8]>),
}

/// A field selection on an operand, or a test for a field's presence.
#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    /// The operand.
    pub operand: Box<Expr>,
    /// The field's name as written.
    pub field: Box<str>,
    /// Whether this is `has(operand.field)`, a test for presence.
    pub test_only: bool,
}

/// A call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The function's name.
    pub function: Box<str>,
    /// The target of a method.
    pub target: Option<Box<Expr>>,
    /// The arguments.
    pub args: Vec<Expr>,
}

/// A list literal.
#[derive(Clone, Debug, PartialEq)]
pub struct List {
    /// The elements.
    pub elements: Vec<Expr>,
    /// The optional elements (`[?x]`), by ascending index.
    pub optional_indices: Vec<u32>,
}

impl List {
    /// Whether the element at an index is optional.
    pub fn is_optional(&self, index: usize) -> bool {
        u32::try_from(index).is_ok_and(|index| self.optional_indices.binary_search(&index).is_ok())
    }
}

/// A member of a map literal.
#[derive(Clone, Debug, PartialEq)]
pub struct MapEntry {
    /// The entry's id.
    pub id: ExprId,
    /// The key.
    pub key: Expr,
    /// The value.
    pub value: Expr,
    /// `{?key: value}`: the value is an optional, and the entry is omitted if it is empty.
    pub optional: bool,
}

/// A message literal.
#[derive(Clone, Debug, PartialEq)]
pub struct Struct {
    /// The name of the type.
    pub type_name: Box<str>,
    /// The fields.
    pub fields: Vec<StructField>,
}

/// A member of a message literal.
#[derive(Clone, Debug, PartialEq)]
pub struct StructField {
    /// The field's id.
    pub id: ExprId,
    /// The field's name.
    pub name: Box<str>,
    /// The value.
    pub value: Expr,
    /// `Type{?field: value}`.
    pub optional: bool,
}

/// A fold over a list or a map:
///
/// ```text
/// accumulator := initial
/// for variable[, second_variable] in range { if !condition { break }; accumulator = step }
/// result
/// ```
///
/// `condition` and `step` see the variables and the accumulator, `result` only the accumulator. With one variable it is
/// a list's element or a map's key; with two they are index and element, or key and value.
#[derive(Clone, Debug, PartialEq)]
pub struct Comprehension {
    /// The list or map to iterate over.
    pub range: Expr,
    /// The variable.
    pub variable: Box<str>,
    /// The second variable of a fold with two.
    pub second_variable: Option<Box<str>>,
    /// The name of the accumulator: [`ACCUMULATOR`], or the variable of `optMap`.
    pub accumulator: Box<str>,
    /// The initial value of the accumulator.
    pub initial: Expr,
    /// The fold stops when this is false.
    pub condition: Expr,
    /// The next value of the accumulator.
    pub step: Expr,
    /// The result of the fold.
    pub result: Expr,
}

/// The accumulator's name in the expansions of macros; source text cannot name it.
pub const ACCUMULATOR: &str = "@result";

/// The function names of operators.
pub mod operators {
    /// `c ? a : b`
    pub const CONDITIONAL: &str = "_?_:_";
    /// `a && b`
    pub const LOGICAL_AND: &str = "_&&_";
    /// `a || b`
    pub const LOGICAL_OR: &str = "_||_";
    /// `!a`
    pub const LOGICAL_NOT: &str = "!_";
    /// `a == b`
    pub const EQUALS: &str = "_==_";
    /// `a != b`
    pub const NOT_EQUALS: &str = "_!=_";
    /// `a < b`
    pub const LESS: &str = "_<_";
    /// `a <= b`
    pub const LESS_EQUALS: &str = "_<=_";
    /// `a > b`
    pub const GREATER: &str = "_>_";
    /// `a >= b`
    pub const GREATER_EQUALS: &str = "_>=_";
    /// `a + b`
    pub const ADD: &str = "_+_";
    /// `a - b`
    pub const SUBTRACT: &str = "_-_";
    /// `a * b`
    pub const MULTIPLY: &str = "_*_";
    /// `a / b`
    pub const DIVIDE: &str = "_/_";
    /// `a % b`
    pub const MODULO: &str = "_%_";
    /// `-a`
    pub const NEGATE: &str = "-_";
    /// `a[b]`
    pub const INDEX: &str = "_[_]";
    /// `a[?b]`
    pub const OPTIONAL_INDEX: &str = "_[?_]";
    /// `a.?b`; the second argument is the field's name as a string literal.
    pub const OPTIONAL_SELECT: &str = "_?._";
    /// `a in b`
    pub const IN: &str = "@in";
    /// True unless the argument is `false`: errors count as true. Only macros use it.
    pub const NOT_STRICTLY_FALSE: &str = "@not_strictly_false";
}

/// The meaning of an identifier or a call, resolved by the checker.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Reference {
    /// A declared variable, or a variable of a fold.
    Variable(Box<str>),
    /// The value is a type: `int`, `google.protobuf.Timestamp`.
    Type(Type),
    /// The candidate overloads of a call, at least one; several where an argument is `dyn`. Ids are those of
    /// [`declarations`](crate::declarations).
    Function(Box<[&'static str]>),
}

/// A parsed tree.
#[derive(Clone, Debug)]
pub struct Ast {
    /// The tree.
    pub expr: Expr,
    /// The start of each node, in code points, by id (`positions[0]` is unused).
    pub positions: Vec<u32>,
}

/// A tree that the checker has accepted.
#[derive(Clone, Debug)]
pub struct CheckedAst {
    expr: Expr,
    types: Box<[Type]>,
    references: Box<[Option<Reference>]>,
}

impl CheckedAst {
    pub(crate) fn new(expr: Expr, types: Box<[Type]>, references: Box<[Option<Reference>]>) -> CheckedAst {
        CheckedAst { expr, types, references }
    }

    /// An empty tree of the same type.
    pub(crate) fn only_result_type(&self) -> CheckedAst {
        let expr = Expr { id: 0, kind: ExprKind::Unspecified };
        CheckedAst { types: Box::new([self.result_type().clone()]), expr, references: Box::default() }
    }

    /// The tree.
    pub fn expr(&self) -> &Expr {
        &self.expr
    }

    /// Whether recursion over the tree may overflow the current stack. The depth of a tree is bounded by its size.
    pub(crate) fn is_deep(&self) -> bool {
        const MANY_NODES: usize = 500;
        self.types.len() > MANY_NODES
    }

    /// An upper bound of the tree's depth.
    pub(crate) fn nesting(&self) -> usize {
        const MAX_DEPTH: usize = 250;
        const OF_AN_EVALUATION: usize = 4;
        self.types.len().min(MAX_DEPTH) + OF_AN_EVALUATION
    }

    /// The type of the result.
    pub fn result_type(&self) -> &Type {
        self.type_of(self.expr.id)
    }

    /// The type of a node's value; `dyn` if it is known only at run time.
    pub fn type_of(&self, id: ExprId) -> &Type {
        self.types.get(id as usize).unwrap_or(&Type::Dyn)
    }

    /// The resolved meaning of an identifier or a call.
    pub fn reference(&self, id: ExprId) -> Option<&Reference> {
        self.references.get(id as usize)?.as_ref()
    }

    /// Whether a variable of this name is used, of the environment or of a fold.
    pub fn uses_variable(&self, name: &str) -> bool {
        let is_used =
            |reference: &Reference| matches!(reference, Reference::Variable(used) if **used == *name);
        self.references.iter().flatten().any(is_used)
    }

    /// The names of the fields that are read of a variable (`variable.field`), each once.
    pub fn fields_of(&self, variable: &str) -> Vec<&str> {
        let mut fields = Vec::new();
        collect_fields(&self.expr, variable, &mut fields);
        fields.sort_unstable();
        fields.dedup();
        fields
    }

    /// The overload of a call, if there is only one candidate.
    pub fn overload(&self, id: ExprId) -> Option<&'static str> {
        match self.reference(id)? {
            Reference::Function(overloads) => match overloads.as_ref() {
                [overload] => Some(overload),
                _ => None,
            },
            _ => None,
        }
    }
}

fn collect_fields<'e>(expr: &'e Expr, variable: &str, fields: &mut Vec<&'e str>) {
    let is_variable = |expr: &Expr| matches!(&expr.kind, ExprKind::Ident(name) if **name == *variable);
    match &expr.kind {
        ExprKind::Select(select) if is_variable(&select.operand) => fields.push(&select.field),
        ExprKind::Call(call) if *call.function == *operators::OPTIONAL_SELECT => match call.args.as_slice() {
            [operand, Expr { kind: ExprKind::Literal(Literal::String(field)), .. }]
                if is_variable(operand) =>
            {
                fields.push(field);
            }
            _ => {}
        },
        _ => {}
    }
    let mut children = |child: &'e Expr| collect_fields(child, variable, fields);
    match &expr.kind {
        ExprKind::Unspecified | ExprKind::Literal(_) | ExprKind::Ident(_) => {}
        ExprKind::Select(select) => children(&select.operand),
        ExprKind::Call(call) => {
            call.target.iter().map(|target| &**target).chain(&call.args).for_each(children)
        }
        ExprKind::List(list) => list.elements.iter().for_each(children),
        ExprKind::Map(entries) => {
            entries.iter().flat_map(|entry| [&entry.key, &entry.value]).for_each(children)
        }
        ExprKind::Struct(message) => message.fields.iter().map(|field| &field.value).for_each(children),
        ExprKind::Comprehension(fold) => {
            [&fold.range, &fold.initial, &fold.condition, &fold.step, &fold.result]
                .into_iter()
                .for_each(children);
        }
    }
}
