//! Estimates the cost of an expression before evaluation.
//!
//! The units are those of the run time: about one for each variable, field or call, and more where the work grows with
//! the size of values. An estimate is a range from the cheapest to the most expensive evaluation, for values within the
//! bounds of a [`SizeEstimator`]. The numbers decide which definitions and policies a server accepts
//! (<https://kubernetes.io/docs/reference/using-api/cel/#resource-constraints>), so they equal those of cel-go's
//! estimator with Kubernetes' costs of functions, to the unit, oddities included.

mod calls;
mod range;

pub use range::Estimate;

use crate::ast::{Call, CheckedAst, Comprehension, Expr, ExprId, ExprKind, List, Literal, MapEntry, Select};
use crate::stack::with_room;
use crate::types::Type;
use std::collections::HashMap;
use std::rc::Rc;

/// The cost of a use of a variable or field.
const SELECT: Estimate = Estimate::fixed(1);
/// The cost of a list literal, besides its elements.
const LIST: Estimate = Estimate::fixed(10);
/// The cost of a map literal, besides its entries.
const MAP: Estimate = Estimate::fixed(30);
/// The cost of a message literal, besides its fields.
const MESSAGE: Estimate = Estimate::fixed(40);
/// The cost of each visited character.
const STRING_TRAVERSAL: f64 = 0.1;
/// The cost of each character of a regular expression for each character of the text.
const REGEX_LENGTH: f64 = 0.25;

/// Provides bounds on the sizes of variables and their parts.
pub trait SizeEstimator: Sync {
    /// The size of a value, in the units of `size()`. `path` leads from a variable through fields to the value; the
    /// parts of lists and maps are `@items`, `@indices`, `@keys` and `@values`. It is empty for a value without a path.
    fn size(&self, path: &[Rc<str>], value_type: &Type) -> Option<Estimate>;
}

/// Provides no bounds: every list, map and string may have any size.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnknownSizes;

impl SizeEstimator for UnknownSizes {
    fn size(&self, _path: &[Rc<str>], _value_type: &Type) -> Option<Estimate> {
        None
    }
}

/// Estimates the cost of an evaluation of a checked expression.
pub fn estimate_cost(ast: &CheckedAst, sizes: &dyn SizeEstimator) -> Estimate {
    // If no thread for a deep expression can be started, its cost is unknown, and so the maximum.
    with_room(ast.is_deep(), || estimate_here(ast, sizes)).unwrap_or(Estimate::UNKNOWN)
}

fn estimate_here(ast: &CheckedAst, sizes: &dyn SizeEstimator) -> Estimate {
    let mut coster = Coster {
        ast,
        sizes,
        paths: HashMap::new(),
        variables: HashMap::new(),
        computed: HashMap::new(),
        entries: HashMap::new(),
    };
    coster.cost(ast.expr())
}

/// The path from a variable to a value; `None` for a value without a path.
type Path = Option<Rc<[Rc<str>]>>;

fn append(path: &Path, part: &str) -> Path {
    let path = path.as_deref().unwrap_or_default();
    Some(path.iter().cloned().chain([Rc::from(part)]).collect())
}

/// The sizes of the entries of a list or map.
#[derive(Clone, Copy, Debug)]
struct EntrySize {
    container: Container,
    key: Estimate,
    value: Estimate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Container {
    List,
    Other,
}

impl Container {
    fn of(value_type: &Type) -> Container {
        match value_type {
            Type::List(_) => Container::List,
            _ => Container::Other,
        }
    }
}

impl EntrySize {
    fn union(self, other: EntrySize) -> EntrySize {
        EntrySize {
            container: self.container,
            key: self.key.union(other.key),
            value: self.value.union(other.value),
        }
    }
}

/// The known facts about a variable of a fold.
#[derive(Clone, Default)]
struct Local {
    path: Path,
    size: Option<Estimate>,
    entry: Option<EntrySize>,
}

/// A value whose size affects the cost of a call.
struct Node<'a> {
    path: Path,
    value_type: Type,
    expr: Option<&'a Expr>,
    /// The size computed from the expression.
    computed: Option<Estimate>,
}

struct Coster<'a> {
    ast: &'a CheckedAst,
    sizes: &'a dyn SizeEstimator,
    paths: HashMap<ExprId, Path>,
    variables: HashMap<&'a str, Vec<Local>>,
    computed: HashMap<ExprId, Estimate>,
    entries: HashMap<ExprId, EntrySize>,
}

impl<'a> Coster<'a> {
    fn cost(&mut self, expr: &'a Expr) -> Estimate {
        match &expr.kind {
            ExprKind::Unspecified | ExprKind::Literal(_) => Estimate::default(),
            ExprKind::Ident(name) => {
                let path = match self.local(name) {
                    Some(local) => local.path.clone(),
                    None => Some(Rc::from([Rc::from(&**name)])),
                };
                self.paths.insert(expr.id, path);
                SELECT
            }
            ExprKind::Select(select) => self.select(expr, select),
            ExprKind::Call(call) => self.call(expr, call),
            ExprKind::List(list) => self.list(expr, list),
            ExprKind::Map(entries) => self.map(expr, entries),
            ExprKind::Struct(message) => {
                message.fields.iter().map(|field| self.cost(&field.value)).fold(MESSAGE, Estimate::plus)
            }
            ExprKind::Comprehension(fold) if is_bind(fold) => self.bind(expr, fold),
            ExprKind::Comprehension(fold) => self.comprehension(expr, fold),
        }
    }

    fn select(&mut self, expr: &Expr, select: &'a Select) -> Estimate {
        let operand = self.cost(&select.operand);
        if select.test_only {
            return operand;
        }
        let path = append(&self.path(&select.operand), &select.field);
        self.paths.insert(expr.id, path);
        match self.ast.type_of(select.operand.id) {
            Type::Map(_) | Type::Object(_) | Type::Parameter(_) => operand.plus(SELECT),
            _ => operand,
        }
    }

    fn call(&mut self, expr: &'a Expr, call: &'a Call) -> Estimate {
        if &*call.function == "dyn"
            && let Some(argument) = call.args.first()
        {
            let cost = self.cost(argument);
            self.copy_sizes(expr, argument);
            return cost.plus(Estimate::fixed(1));
        }
        let mut costs = Vec::with_capacity(call.args.len());
        let mut nodes = Vec::with_capacity(call.args.len());
        for argument in &call.args {
            costs.push(self.cost(argument));
            nodes.push(self.node(argument));
        }
        let Some(crate::ast::Reference::Function(overloads)) = self.ast.reference(expr.id) else {
            return Estimate::default();
        };
        let mut sum = Estimate::default();
        let target = call.target.as_deref().map(|target| {
            sum = sum.plus(self.cost(target));
            self.node(target)
        });
        let mut cost: Option<Estimate> = None;
        let mut size: Option<Estimate> = None;
        for overload in overloads.iter().copied() {
            let called = calls::Called {
                expr,
                function: &call.function,
                overload,
                target: target.as_ref(),
                args: &nodes,
                costs: &costs,
            };
            let (overload_cost, overload_size) = self.overload_cost(&called);
            cost = Some(cost.map_or(overload_cost, |cost| cost.union(overload_cost)));
            size = match (size, overload_size) {
                (Some(size), Some(other)) => Some(size.union(other)),
                (size, other) => size.or(other),
            };
            let part = match overload {
                "index_list" => Some("@items"),
                "index_map" => Some("@values"),
                _ => None,
            };
            if let (Some(part), Some(container)) = (part, call.args.first()) {
                size = self.entry_size(container).map(|entry| entry.value);
                let path = append(&self.path(container), part);
                self.paths.insert(expr.id, path);
            }
            if size.is_none() {
                size = self.size(expr);
            }
        }
        self.set_size(expr, size);
        sum.plus(cost.unwrap_or_default())
    }

    fn list(&mut self, expr: &'a Expr, list: &'a List) -> Estimate {
        let mut sum = LIST;
        let mut item: Option<Estimate> = None;
        for element in &list.elements {
            sum = sum.plus(self.cost(element));
            let size = self.size(element).unwrap_or(Estimate::UNKNOWN);
            item = Some(item.map_or(size, |item| item.union(size)));
        }
        let value = item.unwrap_or_default();
        self.entries
            .insert(expr.id, EntrySize { container: Container::List, key: Estimate::fixed(1), value });
        sum
    }

    fn map(&mut self, expr: &'a Expr, entries: &'a [MapEntry]) -> Estimate {
        let mut sum = MAP;
        let mut sizes: Option<(Estimate, Estimate)> = None;
        for entry in entries {
            sum = sum.plus(self.cost(&entry.key)).plus(self.cost(&entry.value));
            let key = self.size(&entry.key).unwrap_or(Estimate::UNKNOWN);
            let value = self.size(&entry.value).unwrap_or(Estimate::UNKNOWN);
            sizes = Some(match sizes {
                Some((keys, values)) => (keys.union(key), values.union(value)),
                None => (key, value),
            });
        }
        let (key, value) = sizes.unwrap_or_default();
        self.entries.insert(expr.id, EntrySize { container: Container::Other, key, value });
        sum
    }

    fn bind(&mut self, expr: &'a Expr, fold: &'a Comprehension) -> Estimate {
        let mut sum = self.cost(&fold.range).plus(self.cost(&fold.initial));
        self.push_value(&fold.accumulator, &fold.initial);
        sum = sum.plus(self.cost(&fold.result));
        self.pop(&fold.accumulator);
        self.copy_sizes(expr, &fold.result);
        sum
    }

    fn comprehension(&mut self, expr: &'a Expr, fold: &'a Comprehension) -> Estimate {
        let mut sum = self.cost(&fold.range).plus(self.cost(&fold.initial));
        self.push_value(&fold.accumulator, &fold.initial);
        let entry = self.entry_size(&fold.range);
        let path = self.path(&fold.range);
        let container =
            entry.map_or_else(|| Container::of(self.ast.type_of(fold.range.id)), |entry| entry.container);
        let is_list = container == Container::List;
        let (keys, values) = (entry.map(|entry| entry.key), entry.map(|entry| entry.value));
        let local = |part: &str, size| Local { path: append(&path, part), size, entry: None };
        match &fold.second_variable {
            Some(second) => {
                self.push(&fold.variable, local(if is_list { "@indices" } else { "@keys" }, keys));
                self.push(second, local(if is_list { "@items" } else { "@values" }, values));
            }
            None if is_list => self.push(&fold.variable, local("@items", values)),
            None => self.push(&fold.variable, local("@keys", keys)),
        }
        let condition = self.cost(&fold.condition);
        let step = self.cost(&fold.step);
        self.pop(&fold.variable);
        if let Some(second) = &fold.second_variable {
            self.pop(second);
        }
        sum = sum.plus(self.cost(&fold.result));
        self.pop(&fold.accumulator);

        let rounds = self.size(&fold.range).unwrap_or(Estimate::UNKNOWN);
        sum = sum.plus(rounds.times(step.plus(condition)));
        match &fold.initial.kind {
            ExprKind::Literal(_) => {
                let size = self.size(&fold.initial);
                self.set_size(expr, size);
            }
            ExprKind::List(_) | ExprKind::Map(_) => {
                self.set_size(expr, Some(rounds));
                if let Some(entry) = self.entry_size(&fold.step) {
                    self.entries.insert(expr.id, entry);
                }
            }
            _ => {}
        }
        sum
    }

    fn push_value(&mut self, name: &'a str, value: &'a Expr) {
        let local = Local { path: self.path(value), size: self.size(value), entry: self.entry_size(value) };
        self.push(name, local);
    }

    fn push(&mut self, name: &'a str, local: Local) {
        self.variables.entry(name).or_default().push(local);
    }

    fn pop(&mut self, name: &str) {
        if let Some(locals) = self.variables.get_mut(name) {
            locals.pop();
        }
    }

    fn local(&self, name: &str) -> Option<&Local> {
        self.variables.get(name)?.last()
    }

    fn local_of(&self, expr: &Expr) -> Option<&Local> {
        match &expr.kind {
            ExprKind::Ident(name) => self.local(name),
            _ => None,
        }
    }

    fn path(&self, expr: &Expr) -> Path {
        match self.local_of(expr) {
            Some(local) => local.path.clone(),
            None => self.paths.get(&expr.id).cloned().flatten(),
        }
    }

    fn node(&mut self, expr: &'a Expr) -> Node<'a> {
        Node {
            path: self.path(expr),
            value_type: self.ast.type_of(expr.id).clone(),
            expr: Some(expr),
            computed: self.size(expr),
        }
    }

    fn set_size(&mut self, expr: &Expr, size: Option<Estimate>) {
        if let Some(size) = size {
            self.computed.insert(expr.id, size);
        }
    }

    fn copy_sizes(&mut self, to: &Expr, from: &Expr) {
        let size = self.size(from);
        self.set_size(to, size);
        if let Some(entry) = self.entry_size(from) {
            self.entries.insert(to.id, entry);
        }
    }

    /// The size of an expression's value, if known.
    fn size(&mut self, expr: &Expr) -> Option<Estimate> {
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

    fn entry_size(&self, expr: &Expr) -> Option<EntrySize> {
        match self.entries.get(&expr.id) {
            Some(entry) => Some(*entry),
            None => self.local_of(expr)?.entry,
        }
    }
}

/// Whether a fold only binds a variable and never iterates.
fn is_bind(fold: &Comprehension) -> bool {
    let is_empty = matches!(&fold.range.kind, ExprKind::List(list) if list.elements.is_empty());
    is_empty && matches!(fold.condition.kind, ExprKind::Literal(Literal::Bool(false)))
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
