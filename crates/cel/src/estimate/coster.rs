//! The facts that are known about the values of an expression: paths and sizes.

use super::range::Estimate;
use super::size_estimator::SizeEstimator;
use crate::ast::Literal;
use crate::ast::{CheckedAst, Expr, ExprId, ExprKind};
use crate::types::Type;
use std::collections::HashMap;
use std::rc::Rc;

/// The path from a variable to a value; `None` for a value without a path.
pub(super) type Path = Option<Rc<[Rc<str>]>>;

pub(super) fn append(path: &Path, part: &str) -> Path {
    let path = path.as_deref().unwrap_or_default();
    Some(path.iter().cloned().chain([Rc::from(part)]).collect())
}

/// The sizes of the entries of a list or map.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntrySize {
    pub(super) container: Container,
    pub(super) key: Estimate,
    pub(super) value: Estimate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Container {
    List,
    Other,
}

impl Container {
    pub(super) fn of(value_type: &Type) -> Container {
        match value_type {
            Type::List(_) => Container::List,
            _ => Container::Other,
        }
    }
}

impl EntrySize {
    pub(super) fn union(self, other: EntrySize) -> EntrySize {
        EntrySize {
            container: self.container,
            key: self.key.union(other.key),
            value: self.value.union(other.value),
        }
    }
}

/// The known facts about a variable of a fold.
#[derive(Clone, Default)]
pub(super) struct Local {
    pub(super) path: Path,
    pub(super) size: Option<Estimate>,
    pub(super) entry: Option<EntrySize>,
}

/// A value whose size affects the cost of a call.
pub(super) struct Node<'a> {
    pub(super) path: Path,
    pub(super) value_type: Type,
    pub(super) expr: Option<&'a Expr>,
    /// The size computed from the expression.
    pub(super) computed: Option<Estimate>,
}

pub(super) struct Coster<'a> {
    pub(super) ast: &'a CheckedAst,
    pub(super) sizes: &'a dyn SizeEstimator,
    pub(super) paths: HashMap<ExprId, Path>,
    pub(super) variables: HashMap<&'a str, Vec<Local>>,
    pub(super) computed: HashMap<ExprId, Estimate>,
    pub(super) entries: HashMap<ExprId, EntrySize>,
}

impl<'a> Coster<'a> {
    pub(super) fn new(ast: &'a CheckedAst, sizes: &'a dyn SizeEstimator) -> Coster<'a> {
        Coster {
            ast,
            sizes,
            paths: HashMap::new(),
            variables: HashMap::new(),
            computed: HashMap::new(),
            entries: HashMap::new(),
        }
    }

    pub(super) fn push_value(&mut self, name: &'a str, value: &'a Expr) {
        let local = Local { path: self.path(value), size: self.size(value), entry: self.entry_size(value) };
        self.push(name, local);
    }

    pub(super) fn push(&mut self, name: &'a str, local: Local) {
        self.variables.entry(name).or_default().push(local);
    }

    pub(super) fn pop(&mut self, name: &str) {
        if let Some(locals) = self.variables.get_mut(name) {
            locals.pop();
        }
    }

    pub(super) fn local(&self, name: &str) -> Option<&Local> {
        self.variables.get(name)?.last()
    }

    pub(super) fn local_of(&self, expr: &Expr) -> Option<&Local> {
        match &expr.kind {
            ExprKind::Ident(name) => self.local(name),
            _ => None,
        }
    }

    pub(super) fn path(&self, expr: &Expr) -> Path {
        match self.local_of(expr) {
            Some(local) => local.path.clone(),
            None => self.paths.get(&expr.id).cloned().flatten(),
        }
    }

    pub(super) fn node(&mut self, expr: &'a Expr) -> Node<'a> {
        Node {
            path: self.path(expr),
            value_type: self.ast.type_of(expr.id).clone(),
            expr: Some(expr),
            computed: self.size(expr),
        }
    }

    pub(super) fn set_size(&mut self, expr: &Expr, size: Option<Estimate>) {
        if let Some(size) = size {
            self.computed.insert(expr.id, size);
        }
    }

    pub(super) fn copy_sizes(&mut self, to: &Expr, from: &Expr) {
        let size = self.size(from);
        self.set_size(to, size);
        if let Some(entry) = self.entry_size(from) {
            self.entries.insert(to.id, entry);
        }
    }

    /// The size of an expression's value, if known.
    pub(super) fn size(&mut self, expr: &Expr) -> Option<Estimate> {
        if let Some(size) = self.computed.get(&expr.id) {
            return Some(*size);
        }
        if let Some(size) = written_size(expr) {
            return Some(size);
        }
        let value_type = self.ast.type_of(expr.id);
        let path = self.path(expr);
        if let Some(size) = self.sizes.size(path.as_deref().unwrap_or_default(), value_type) {
            self.computed.insert(expr.id, size);
            return Some(size);
        }
        if is_scalar(value_type) {
            return Some(Estimate::fixed(1));
        }
        self.local_of(expr)?.size
    }

    pub(super) fn entry_size(&self, expr: &Expr) -> Option<EntrySize> {
        match self.entries.get(&expr.id) {
            Some(entry) => Some(*entry),
            None => self.local_of(expr)?.entry,
        }
    }
}

/// The size of a literal.
fn written_size(expr: &Expr) -> Option<Estimate> {
    let size = match &expr.kind {
        ExprKind::Literal(Literal::String(text)) => text.chars().count(),
        ExprKind::Literal(Literal::Bytes(bytes)) => bytes.len(),
        ExprKind::Literal(_) => 1,
        ExprKind::List(list) => list.elements.len(),
        ExprKind::Map(entries) => entries.len(),
        _ => return None,
    };
    Some(Estimate::fixed(size as u64))
}

/// Whether all values of a type have size 1.
fn is_scalar(value_type: &Type) -> bool {
    match value_type {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => true,
        other => other.optional_value().is_some_and(is_scalar),
    }
}
