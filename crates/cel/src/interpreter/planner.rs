//! Converts checked trees to plans.

use super::cost::CallCost;
use super::evaluate::check_qualifier;
use super::plan::{Attribute, Call, Construction, Fold, Implementation, Node, Plan, Qualifier, Root};
use crate::ast::{self, ACCUMULATOR, CheckedAst, Expr, ExprKind, Literal, Reference, operators};
use crate::functions::{Function, lookup};
use crate::pattern::{self, Pattern};
use crate::types::TypeProvider;
use crate::value::{Key, List, Map, Text, Value};
use indexmap::IndexMap;
use std::collections::HashSet;
use std::sync::Arc;

impl Plan {
    /// Plans an expression. Constant parts are evaluated, and their errors (a malformed timestamp) are errors of the
    /// plan.
    pub(crate) fn new(ast: &CheckedAst, provider: &dyn TypeProvider) -> Result<Plan, String> {
        let mut planner =
            Planner { ast, provider, variables: Vec::new(), scope: Vec::new(), slots: 0, pattern_weight: 0 };
        let root = planner.plan(ast.expr())?;
        let Planner { variables, slots, pattern_weight, .. } = planner;
        Ok(Plan { root, variables: variables.into(), slots, pattern_weight })
    }
}

struct Planner<'s> {
    ast: &'s CheckedAst,
    provider: &'s dyn TypeProvider,
    variables: Vec<Box<str>>,
    /// The variables of the enclosing macros, innermost last, with their slots.
    scope: Vec<(&'s str, usize)>,
    slots: usize,
    pattern_weight: u64,
}

impl<'s> Planner<'s> {
    fn plan(&mut self, expr: &'s Expr) -> Result<Node, String> {
        match &expr.kind {
            ExprKind::Unspecified => Err("unsupported expr: unspecified".to_owned()),
            ExprKind::Literal(literal) => Ok(Node::Constant(constant(literal))),
            ExprKind::Ident(name) => Ok(self.name(expr, name)),
            ExprKind::Select(select) => self.select(expr, select),
            ExprKind::Call(call) => self.call(expr, call),
            ExprKind::List(list) => self.list(list),
            ExprKind::Map(entries) => self.map(entries),
            ExprKind::Struct(message) => self.object(message),
            ExprKind::Comprehension(fold) => self.fold(fold),
        }
    }

    fn name(&mut self, expr: &'s Expr, written: &'s str) -> Node {
        let name = match self.ast.reference(expr.id) {
            Some(Reference::Type(named)) => {
                return Node::Constant(Value::Type(Text::Shared(named.name().into())));
            }
            Some(Reference::Variable(name)) => name,
            _ => written,
        };
        let local = self.scope.iter().rev().find(|(known, _)| *known == name).map(|(_, slot)| *slot);
        let root = match local {
            Some(slot) => Root::Local(slot),
            None => {
                let known = self.variables.iter().position(|known| &**known == name);
                Root::Variable(known.unwrap_or_else(|| {
                    self.variables.push(name.into());
                    self.variables.len() - 1
                }))
            }
        };
        Node::Attribute(Box::new(Attribute { root, qualifiers: Vec::new() }))
    }

    fn select(&mut self, expr: &'s Expr, select: &'s ast::Select) -> Result<Node, String> {
        // A qualified name is not a selection.
        if self.ast.reference(expr.id).is_some() {
            return Ok(self.name(expr, &select.field));
        }
        let operand = self.plan(&select.operand)?;
        let field = Node::Constant(Value::String(Text::Shared(select.field.as_ref().into())));
        let attribute = step(operand, field, false);
        Ok(if select.test_only { Node::Test(attribute) } else { Node::Attribute(attribute) })
    }

    fn call(&mut self, expr: &'s Expr, call: &'s ast::Call) -> Result<Node, String> {
        let mut args = Vec::with_capacity(call.args.len() + 1);
        for arg in call.target.iter().map(|target| &**target).chain(&call.args) {
            args.push(self.plan(arg)?);
        }
        let overload = self.ast.overload(expr.id).unwrap_or_default();
        let function = &*call.function;
        if matches!(function, operators::INDEX | operators::OPTIONAL_INDEX)
            && let Some(Node::Constant(index)) = args.get(1)
        {
            check_qualifier(index)?;
        }
        let args = match <[Node; 2]>::try_from(args) {
            Ok(pair) => match binary(function, overload, pair) {
                Ok(node) => return Ok(node),
                Err(pair) => pair.into(),
            },
            Err(args) => args,
        };
        let args = match <[Node; 3]>::try_from(args) {
            Ok(parts) if function == operators::CONDITIONAL => {
                let root = Root::Conditional(Box::new(parts));
                return Ok(Node::Attribute(Box::new(Attribute { root, qualifiers: Vec::new() })));
            }
            Ok(parts) => parts.into(),
            Err(args) => args,
        };
        let Some(code) = lookup(function, overload) else {
            return match function {
                operators::NOT_STRICTLY_FALSE => match args.into_iter().next() {
                    Some(operand) => Ok(Node::NotStrictlyFalse(Box::new(operand))),
                    None => Err(format!("no such overload: {function}()")),
                },
                _ => Err(format!("no such overload: {function}(...)")),
            };
        };
        if is_conversion(function)
            && let [Node::Constant(value)] = args.as_slice()
        {
            return match code(&mut [value.clone()]) {
                Ok(value) => Ok(Node::Constant(value)),
                Err(error) => Err(error.to_string()),
            };
        }
        let implementation = self.implementation(function, code, &args)?;
        let eager = args.len() == 2
            && matches!(implementation, Implementation::Function(_))
            && function != "format"
            && (!overload.is_empty() || function.starts_with(['_', '@']));
        let cost = CallCost::new(function, overload);
        Ok(Node::Call(Box::new(Call { implementation, args: args.into(), cost, eager })))
    }

    fn list(&mut self, list: &'s ast::List) -> Result<Node, String> {
        let mut items = Vec::with_capacity(list.elements.len());
        for (position, element) in list.elements.iter().enumerate() {
            let optional = list.is_optional(position);
            items.push((self.plan(element)?, optional));
        }
        let constants = items.iter().map(|(item, optional)| match item {
            Node::Constant(value) if !optional => Some(value.clone()),
            _ => None,
        });
        Ok(match constants.collect::<Option<Vec<_>>>() {
            Some(constants) => Node::Constant(Value::List(List::from(constants))),
            None => Node::List(items.into()),
        })
    }

    fn map(&mut self, entries: &'s [ast::MapEntry]) -> Result<Node, String> {
        let mut planned = Vec::with_capacity(entries.len());
        for entry in entries {
            planned.push((self.plan(&entry.key)?, self.plan(&entry.value)?, entry.optional));
        }
        let constants = planned.iter().map(|entry| match entry {
            (Node::Constant(key), Node::Constant(value), false) => Some((Key::new(key).ok()?, value.clone())),
            _ => None,
        });
        Ok(match constants.collect::<Option<IndexMap<_, _>>>() {
            Some(constants) => Node::Constant(Value::Map(Map::from(constants))),
            None => Node::Map(planned.into()),
        })
    }

    fn object(&mut self, message: &'s ast::Struct) -> Result<Node, String> {
        if !self.provider.is_constructible(&message.type_name) {
            return Err(format!("unknown type: {}", message.type_name));
        }
        let mut fields = Vec::with_capacity(message.fields.len());
        for field in &message.fields {
            fields.push((Arc::from(&*field.name), self.plan(&field.value)?, field.optional));
        }
        Ok(Node::Object(Box::new(Construction {
            type_name: Arc::from(&*message.type_name),
            fields: fields.into(),
        })))
    }

    fn fold(&mut self, fold: &'s ast::Comprehension) -> Result<Node, String> {
        let range = self.plan(&fold.range)?;
        let initial = self.plan(&fold.initial)?;
        let outside = self.scope.len();
        let accumulator = self.bind(&fold.accumulator);
        let first = self.bind(&fold.variable);
        let second = fold.second_variable.as_deref().map(|name| self.bind(name));
        let condition = self.plan(&fold.condition)?;
        let mut step = self.plan(&fold.step)?;
        if &*fold.accumulator == ACCUMULATOR {
            take_accumulator(&mut step, accumulator);
        }
        // Only the accumulator is visible to the result.
        self.scope.truncate(outside + 1);
        let result = self.plan(&fold.result)?;
        self.scope.truncate(outside);
        let fold = Fold { range, first, second, accumulator, initial, condition, step, result };
        Ok(Node::Fold(Box::new(fold)))
    }

    fn bind(&mut self, name: &'s str) -> usize {
        let slot = self.slots;
        self.slots += 1;
        self.scope.push((name, slot));
        slot
    }
}

fn constant(literal: &Literal) -> Value<'static> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(value) => Value::Bool(*value),
        Literal::Int(value) => Value::Int(*value),
        Literal::Uint(value) => Value::Uint(*value),
        Literal::Double(value) => Value::Double(*value),
        Literal::String(value) => Value::String(Text::Shared(value.as_ref().into())),
        Literal::Bytes(value) => Value::Bytes(Arc::from(value.as_ref())),
    }
}

/// Extends a path by a step.
fn step(operand: Node, index: Node, optional: bool) -> Box<Attribute> {
    let mut attribute = match operand {
        Node::Attribute(attribute) => attribute,
        operand => Box::new(Attribute { root: Root::Computed(operand), qualifiers: Vec::new() }),
    };
    attribute.qualifiers.push(Qualifier { index, optional });
    attribute
}

/// Plans operators and methods of two operands with special evaluation; returns the operands for other calls.
fn binary(function: &str, overload: &str, sides: [Node; 2]) -> Result<Node, [Node; 2]> {
    Ok(match function {
        operators::LOGICAL_AND => Node::And(Box::new(sides)),
        operators::LOGICAL_OR => Node::Or(Box::new(sides)),
        operators::EQUALS => Node::Equal(Box::new(sides)),
        operators::NOT_EQUALS => Node::NotEqual(Box::new(sides)),
        operators::INDEX => {
            let [operand, index] = sides;
            Node::Attribute(step(operand, index, false))
        }
        operators::OPTIONAL_INDEX | operators::OPTIONAL_SELECT => {
            let [operand, index] = sides;
            Node::Attribute(step(operand, index, true))
        }
        operators::IN if overload == "in_list" => match &sides[1] {
            Node::Constant(Value::List(list)) => {
                if list.is_empty() {
                    return Ok(Node::Constant(Value::Bool(false)));
                }
                match members(list) {
                    Some(set) => {
                        let [item, _] = sides;
                        Node::InSet(Box::new(item), set)
                    }
                    None => return Err(sides),
                }
            }
            _ => return Err(sides),
        },
        "or" if matches!(overload, "" | "optional_or_optional") => Node::OptionalOr(Box::new(sides)),
        "orValue" if matches!(overload, "" | "optional_orValue_value") => {
            Node::OptionalOrValue(Box::new(sides))
        }
        _ => return Err(sides),
    })
}

/// The items of a list of scalars as a set, with equal numbers of other types.
fn members(list: &List<'static>) -> Option<HashSet<Key<'static>>> {
    let mut set = HashSet::with_capacity(list.len());
    for item in list.iter() {
        let item = item.ok()?;
        let key = Key::new(&item).ok()?;
        let mut insert = |value: Value<'static>| set.extend(Key::new(&value));
        match item {
            Value::Int(value) => {
                insert(Value::Double(value as f64));
                u64::try_from(value).into_iter().for_each(|value| insert(Value::Uint(value)));
            }
            Value::Uint(value) => {
                insert(Value::Double(value as f64));
                i64::try_from(value).into_iter().for_each(|value| insert(Value::Int(value)));
            }
            Value::Double(value) => {
                crate::value::exact_int(value).into_iter().for_each(|value| insert(Value::Int(value)));
                crate::value::exact_uint(value).into_iter().for_each(|value| insert(Value::Uint(value)));
            }
            _ => {}
        }
        set.insert(key);
    }
    Some(set)
}

fn is_conversion(function: &str) -> bool {
    matches!(
        function,
        "bool" | "bytes" | "double" | "duration" | "dyn" | "int" | "string" | "timestamp" | "type" | "uint"
    )
}

impl Planner<'_> {
    /// The implementation of a call; literal patterns are compiled.
    fn implementation(
        &mut self,
        function: &str,
        code: Function,
        args: &[Node],
    ) -> Result<Implementation, String> {
        let with: fn(Pattern) -> Implementation = match function {
            "matches" => Implementation::Matches,
            "find" => Implementation::Find,
            "findAll" => Implementation::FindAll,
            _ => return Ok(Implementation::Function(code)),
        };
        match args.get(1) {
            Some(Node::Constant(Value::String(text))) => {
                self.pattern_weight = self.pattern_weight.saturating_add(pattern::weight(text));
                if self.pattern_weight > pattern::MAX_WEIGHT {
                    return Err("the patterns are too large".to_owned());
                }
                pattern::compile(text).map(with)
            }
            _ => Ok(Implementation::Function(code)),
        }
    }
}

/// Lets a step move the accumulator, since its new value replaces it.
fn take_accumulator(step: &mut Node, accumulator: usize) {
    match step {
        Node::Call(call) => {
            if let Some(first @ Node::Attribute(_)) = call.args.first_mut()
                && matches!(first, Node::Attribute(attribute)
                    if attribute.qualifiers.is_empty()
                        && matches!(attribute.root, Root::Local(slot) if slot == accumulator))
            {
                *first = Node::TakeLocal(accumulator);
            }
        }
        Node::Attribute(attribute) if attribute.qualifiers.is_empty() => {
            if let Root::Conditional(parts) = &mut attribute.root {
                let [_, then, otherwise] = &mut **parts;
                take_accumulator(then, accumulator);
                take_accumulator(otherwise, accumulator);
            }
        }
        _ => {}
    }
}
