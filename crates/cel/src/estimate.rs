//! Estimates the cost of an expression before evaluation.
//!
//! The units are those of the run time: about one for each variable, field or call, and more where the work grows with
//! the size of values. An estimate is a range from the cheapest to the most expensive evaluation, for values within the
//! bounds of a [`SizeEstimator`]. The numbers decide which definitions and policies a server accepts
//! (<https://kubernetes.io/docs/reference/using-api/cel/#resource-constraints>), so they equal those of cel-go's
//! estimator with Kubernetes' costs of functions, to the unit, oddities included.

mod calls;
mod coster;
mod range;
mod size_estimator;
mod unit_costs;

pub use range::Estimate;
pub use size_estimator::{SizeEstimator, UnknownSizes};

use crate::ast::{Call, CheckedAst, Comprehension, Expr, ExprKind, List, Literal, MapEntry, Select};
use crate::stack::with_room;
use crate::types::Type;
use coster::{Container, Coster, EntrySize, Local, append};
use std::rc::Rc;
use unit_costs::{LIST, MAP, MESSAGE, SELECT};

/// Estimates the cost of an evaluation of a checked expression.
pub fn estimate_cost(ast: &CheckedAst, sizes: &dyn SizeEstimator) -> Estimate {
    // If no thread for a deep expression can be started, its cost is unknown, and so the maximum.
    with_room(ast.is_deep(), || estimate_here(ast, sizes)).unwrap_or(Estimate::UNKNOWN)
}

fn estimate_here(ast: &CheckedAst, sizes: &dyn SizeEstimator) -> Estimate {
    let mut coster = Coster::new(ast, sizes);
    coster.cost(ast.expr())
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
}

/// Whether a fold only binds a variable and never iterates.
fn is_bind(fold: &Comprehension) -> bool {
    let is_empty = matches!(&fold.range.kind, ExprKind::List(list) if list.elements.is_empty());
    is_empty && matches!(fold.condition.kind, ExprKind::Literal(Literal::Bool(false)))
}
