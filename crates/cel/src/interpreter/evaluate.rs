//! Evaluates plans.
//!
//! The stack is bounded by the depth of the expression, which the parser bounds. Time and memory are bounded by the
//! budget: a call whose cost is known from its arguments is charged before it is made.

use super::Activation;
use super::cost::{self, CREATE_LIST, CREATE_MAP, CREATE_OBJECT, SELECT};
use super::plan::{Attribute, Call, Construction, Fold, Implementation, Node, Plan, Root};
use crate::EvaluationError;
use crate::functions::{find, find_all, matches};
use crate::value::{Key, Map, Object, Text, Value, exact_int};
use crate::work;
use indexmap::IndexMap;
use std::borrow::Cow;

type Outcome<'a> = Result<Value<'a>, EvaluationError>;

impl Plan {
    /// Evaluates the expression. The cost is deducted from the budget, which is 0 afterwards if it was exceeded.
    pub(crate) fn evaluate<'a>(&'a self, activation: &Activation<'a>, budget: &mut u64) -> Outcome<'a> {
        let variables = self.variables.iter().map(|name| activation.get(name).cloned()).collect();
        let mut evaluator = Evaluator {
            plan: self,
            variables,
            locals: vec![Slot::Empty; self.slots],
            limit: *budget,
            cost: 0,
        };
        let _counted = work::begin();
        let result = evaluator.evaluate(&self.root);
        *budget = budget.saturating_sub(evaluator.cost);
        result
    }
}

struct Evaluator<'a> {
    plan: &'a Plan,
    variables: Vec<Option<Value<'a>>>,
    locals: Vec<Slot<'a>>,
    limit: u64,
    cost: u64,
}

/// A variable of a macro.
#[derive(Clone, Debug)]
enum Slot<'a> {
    /// Outside the macro.
    Empty,
    /// Not evaluated yet.
    Initial(&'a Node),
    Value(Value<'a>),
    /// The evaluation failed.
    Failed(EvaluationError),
}

impl<'a> From<Outcome<'a>> for Slot<'a> {
    fn from(outcome: Outcome<'a>) -> Slot<'a> {
        match outcome {
            Ok(value) => Slot::Value(value),
            Err(error) => Slot::Failed(error),
        }
    }
}

impl<'a> Evaluator<'a> {
    fn charge(&mut self, cost: u64) -> Result<(), EvaluationError> {
        self.cost = self.cost.saturating_add(cost);
        match self.cost > self.limit || work::is_spent() {
            true => Err(EvaluationError::CostLimitExceeded),
            false => Ok(()),
        }
    }

    fn evaluate(&mut self, node: &'a Node) -> Outcome<'a> {
        match node {
            Node::Constant(value) => Ok(value.clone()),
            Node::Attribute(attribute) => {
                let value = self.resolve(attribute);
                // A conditional costs only its parts.
                if !matches!(attribute.root, Root::Conditional(_)) {
                    self.charge(SELECT)?;
                }
                value
            }
            Node::Test(attribute) => self.test(attribute),
            Node::TakeLocal(slot) => {
                let value = self.local(*slot, true);
                self.charge(SELECT)?;
                value
            }
            Node::And(terms) => self.connect(terms, false),
            Node::Or(terms) => self.connect(terms, true),
            Node::Equal(sides) => {
                let (left, right) = self.sides(sides, cost::equality)?;
                left.equal(&right).map(Value::Bool)
            }
            Node::NotEqual(sides) => {
                let (left, right) = self.sides(sides, cost::inequality)?;
                match left.equal(&right) {
                    Err(error) if error.ends_evaluation() => Err(error),
                    equal => Ok(Value::Bool(equal != Ok(true))),
                }
            }
            Node::InSet(item, set) => {
                let item = self.evaluate(item)?;
                Ok(Value::Bool(Key::new(&item).is_ok_and(|key| set.contains(&key))))
            }
            Node::OptionalOr(sides) => {
                let [left, right] = &**sides;
                match self.evaluate(left)? {
                    Value::Optional(None) => self.evaluate(right),
                    left => Ok(left),
                }
            }
            Node::OptionalOrValue(sides) => {
                let [left, right] = &**sides;
                match self.evaluate(left)? {
                    Value::Optional(None) => self.evaluate(right),
                    Value::Optional(Some(value)) => Ok((*value).clone()),
                    left => Ok(left),
                }
            }
            Node::NotStrictlyFalse(operand) => {
                let value = self.evaluate(operand);
                self.charge(1)?;
                match value {
                    Ok(Value::Bool(value)) => Ok(Value::Bool(value)),
                    Err(error) if error.ends_evaluation() => Err(error),
                    _ => Ok(Value::Bool(true)),
                }
            }
            Node::Call(call) => self.call(call),
            Node::List(items) => {
                let list = self.list(items);
                self.charge(CREATE_LIST)?;
                list
            }
            Node::Map(entries) => {
                let map = self.map(entries);
                self.charge(CREATE_MAP)?;
                map
            }
            Node::Object(object) => {
                let object = self.object(object);
                self.charge(CREATE_OBJECT)?;
                object
            }
            Node::Fold(fold) => self.fold(fold),
        }
    }

    /// Evaluates a part of a path: an attribute there costs only its steps.
    fn evaluate_within(&mut self, node: &'a Node) -> Outcome<'a> {
        match node {
            Node::Attribute(attribute) => self.resolve(attribute),
            node => self.evaluate(node),
        }
    }

    /// Evaluates `&&`, or `||` if `decisive` is true: either side decides, and errors count only if neither does.
    fn connect(&mut self, terms: &'a [Node; 2], decisive: bool) -> Outcome<'a> {
        let mut error = None;
        for term in terms {
            match self.evaluate(term) {
                Ok(Value::Bool(value)) if value == decisive => return Ok(Value::Bool(decisive)),
                Ok(Value::Bool(_)) => {}
                Ok(_) => error = error.or(Some(EvaluationError::NO_SUCH_OVERLOAD)),
                Err(problem) if problem.ends_evaluation() => return Err(problem),
                Err(problem) => error = error.or(Some(problem)),
            }
        }
        error.map_or(Ok(Value::Bool(!decisive)), Err)
    }

    /// Evaluates both sides of a comparison and charges its cost.
    fn sides(
        &mut self,
        sides: &'a [Node; 2],
        cost: fn(&Value<'_>, &Value<'_>) -> u64,
    ) -> Result<(Value<'a>, Value<'a>), EvaluationError> {
        let [left, right] = sides;
        let left = self.evaluate(left);
        if let Err(error) = &left
            && error.ends_evaluation()
        {
            return left.map(|left| (left, Value::Null));
        }
        let right = self.evaluate(right);
        let sizes = (left.as_ref().unwrap_or(&Value::Null), right.as_ref().unwrap_or(&Value::Null));
        self.charge(cost(sizes.0, sizes.1))?;
        Ok((left?, right?))
    }

    fn variable(&self, index: usize) -> Outcome<'a> {
        match self.variables.get(index) {
            Some(Some(value)) => Ok(value.clone()),
            _ => {
                let name = self.plan.variables.get(index).map_or("", |name| name);
                Err(EvaluationError::failed(format!("no such attribute(s): {name}")))
            }
        }
    }

    /// Reads a variable of a macro; `take` moves its value out.
    fn local(&mut self, slot: usize, take: bool) -> Outcome<'a> {
        let initial = match self.locals.get(slot) {
            Some(Slot::Initial(node)) => Some(*node),
            _ => None,
        };
        if let Some(node) = initial {
            let value = self.evaluate(node);
            if let Some(place) = self.locals.get_mut(slot) {
                *place = Slot::from(value);
            }
        }
        match self.locals.get_mut(slot) {
            Some(place @ Slot::Value(_)) if take => match std::mem::replace(place, Slot::Empty) {
                Slot::Value(value) => Ok(value),
                _ => Ok(Value::Null),
            },
            Some(Slot::Value(value)) => Ok(value.clone()),
            Some(Slot::Failed(error)) => Err(error.clone()),
            Some(Slot::Empty | Slot::Initial(_)) | None => Err("no such attribute(s): @result".into()),
        }
    }

    fn root(&mut self, root: &'a Root) -> Outcome<'a> {
        match root {
            Root::Variable(index) => self.variable(*index),
            Root::Local(slot) => self.local(*slot, false),
            Root::Conditional(parts) => {
                let [condition, then, otherwise] = &**parts;
                match self.evaluate(condition)? {
                    Value::Bool(true) => self.evaluate_within(then),
                    Value::Bool(false) => self.evaluate_within(otherwise),
                    _ => Err(EvaluationError::NO_SUCH_OVERLOAD),
                }
            }
            Root::Computed(node) => self.evaluate(node),
        }
    }

    /// Evaluates a path.
    fn resolve(&mut self, attribute: &'a Attribute) -> Outcome<'a> {
        let mut value = self.root(&attribute.root)?;
        // A path from an optional yields an optional. The reference unwraps the value of an optional that it finds
        // under a name, so that its schema is lost: `oldSelf.value()` is plain JSON.
        let mut optional = false;
        match value {
            Value::Optional(None) => return Ok(value),
            Value::Optional(Some(inner)) if attribute.qualifiers.is_empty() => {
                return Ok(match inner.has_schema() {
                    true => Value::some(inner.without_schema()),
                    false => Value::Optional(Some(inner)),
                });
            }
            Value::Optional(Some(inner)) => (value, optional) = (inner.without_schema(), true),
            _ => {}
        }
        for qualifier in &attribute.qualifiers {
            optional |= qualifier.optional;
            match self.qualify(&value, &qualifier.index, optional)? {
                Some(found) => value = found,
                None => return Ok(Value::Optional(None)),
            }
        }
        Ok(if optional { Value::some(value) } else { value })
    }

    /// Tests whether the last step of a path yields a value. The earlier steps must.
    fn test(&mut self, attribute: &'a Attribute) -> Outcome<'a> {
        let Some((last, steps)) = attribute.qualifiers.split_last() else { return Ok(Value::Bool(true)) };
        let mut value = self.root(&attribute.root)?;
        let before = self.cost;
        let mut optional = false;
        match value {
            Value::Optional(None) => return Ok(Value::Bool(false)),
            Value::Optional(Some(inner)) => (value, optional) = (inner.without_schema(), true),
            _ => {}
        }
        for qualifier in steps {
            optional |= qualifier.optional;
            match self.qualify(&value, &qualifier.index, optional)? {
                Some(found) => value = found,
                None => return Ok(Value::Bool(false)),
            }
        }
        let found = self.index(&last.index).and_then(|index| match &value {
            Value::Object(object) => object.has(&index),
            value => lookup(value, &index).map(|found| found.is_some()),
        });
        if !optional || found == Ok(true) {
            self.charge(SELECT)?;
        }
        // A step of a path that begins with a conditional is free.
        if matches!(attribute.root, Root::Conditional(_)) && self.cost > before {
            self.cost -= SELECT;
        }
        found.map(Value::Bool)
    }

    /// Evaluates and charges one step of a path; `None` if an optional step yields no value.
    fn qualify(
        &mut self,
        value: &Value<'a>,
        index: &'a Node,
        optional: bool,
    ) -> Result<Option<Value<'a>>, EvaluationError> {
        let found = self.index(index).and_then(|index| match lookup(value, &index)? {
            // Every field of a constructed object exists; an unset one is null.
            None if !optional && matches!(value, Value::Object(_)) => Ok(Some(Value::Null)),
            None if !optional => Err(missing(value, &index)),
            found => Ok(found),
        });
        // An optional step without a value is free.
        if !optional || matches!(found, Ok(Some(_))) {
            self.charge(SELECT)?;
        }
        found
    }

    fn index(&mut self, index: &'a Node) -> Result<Cow<'a, Value<'a>>, EvaluationError> {
        match index {
            // The plan has checked it.
            Node::Constant(index) => Ok(Cow::Borrowed(index)),
            index => {
                let index = self.evaluate_within(index)?;
                check_qualifier(&index).map_err(EvaluationError::failed)?;
                Ok(Cow::Owned(index))
            }
        }
    }

    fn call(&mut self, call: &'a Call) -> Outcome<'a> {
        // Most calls have few arguments, which need no heap allocation.
        match call.args.len() {
            0..=3 => {
                let mut room = [const { Value::Null }; 3];
                self.call_with(call, room.get_mut(..call.args.len()).unwrap_or_default())
            }
            many => self.call_with(call, &mut vec![Value::Null; many]),
        }
    }

    /// Evaluates a call with preallocated arguments.
    fn call_with(&mut self, call: &'a Call, args: &mut [Value<'a>]) -> Outcome<'a> {
        let mut failure = None;
        for (position, (arg, place)) in call.args.iter().zip(args.iter_mut()).enumerate() {
            match self.evaluate(arg) {
                Ok(value) => *place = value,
                Err(error) if error.ends_evaluation() => return Err(error),
                // A call that fails before its last argument is free.
                Err(error) if !call.eager && position + 1 < call.args.len() => return Err(error),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        if failure.is_some() || !call.cost.needs_result() {
            self.charge(call.cost.of(args, failure.is_some(), None, self.limit)?)?;
        }
        if let Some(error) = failure {
            return Err(error);
        }
        let result = match (&call.implementation, &mut *args) {
            (Implementation::Function(function), args) => function(args),
            (Implementation::Matches(pattern), [text, ..]) => matches(pattern, text),
            (Implementation::Find(pattern), [text, ..]) => find(pattern, text),
            (Implementation::FindAll(pattern), [text, _]) => find_all(pattern, text, -1),
            (Implementation::FindAll(pattern), [text, _, Value::Int(limit)]) => {
                find_all(pattern, text, *limit)
            }
            _ => Err(EvaluationError::NO_SUCH_OVERLOAD),
        };
        if call.cost.needs_result() {
            self.charge(call.cost.of(args, false, result.as_ref().ok(), self.limit)?)?;
        }
        result
    }

    fn list(&mut self, items: &'a [(Node, bool)]) -> Outcome<'a> {
        let mut list = Vec::with_capacity(items.len());
        for (item, optional) in items {
            match (self.evaluate(item)?, optional) {
                (Value::Optional(None), true) => {}
                (Value::Optional(Some(value)), true) => list.push((*value).clone()),
                (value, true) => {
                    let value = value.display();
                    return Err(EvaluationError::failed(format!(
                        "cannot initialize optional list element from non-optional value {value}"
                    )));
                }
                (value, false) => list.push(value),
            }
        }
        Ok(Value::from(list))
    }

    fn map(&mut self, entries: &'a [(Node, Node, bool)]) -> Outcome<'a> {
        let mut map = IndexMap::with_capacity(entries.len());
        for (key, value, optional) in entries {
            let key = self.evaluate(key)?;
            let value = match (self.evaluate(value)?, optional) {
                (Value::Optional(None), true) => {
                    map.shift_remove(&Key::new(&key)?);
                    continue;
                }
                (Value::Optional(Some(value)), true) => (*value).clone(),
                (value, true) => {
                    let (key, value) = (key.display(), value.display());
                    return Err(EvaluationError::failed(format!(
                        "cannot initialize optional entry '{key}' from non-optional value {value}"
                    )));
                }
                (value, false) => value,
            };
            map.insert(Key::new(&key)?, value);
        }
        Ok(Value::Map(Map::from(map)))
    }

    fn object(&mut self, construction: &'a Construction) -> Outcome<'a> {
        let mut fields = IndexMap::with_capacity(construction.fields.len());
        for (name, value, optional) in &construction.fields {
            let value = match (self.evaluate(value)?, optional) {
                (Value::Optional(None), true) => {
                    fields.shift_remove(&Text::Borrowed(name));
                    continue;
                }
                (Value::Optional(Some(value)), true) => (*value).clone(),
                (value, true) => {
                    let value = value.display();
                    return Err(EvaluationError::failed(format!(
                        "cannot initialize optional entry '{name}' from non-optional value {value}"
                    )));
                }
                (value, false) => value,
            };
            fields.insert(Text::Borrowed(name), value);
        }
        Object::new(&construction.type_name, fields).map(Value::Object)
    }

    fn set(&mut self, slot: usize, value: Slot<'a>) {
        if let Some(place) = self.locals.get_mut(slot) {
            *place = value;
        }
    }

    fn fold(&mut self, fold: &'a Fold) -> Outcome<'a> {
        let range = self.evaluate(&fold.range)?;
        self.set(fold.accumulator, Slot::Initial(&fold.initial));
        match (&range, fold.second) {
            (Value::List(list), None) => {
                for index in 0..list.len() {
                    let Some(item) = list.get(index) else { break };
                    self.set(fold.first, Slot::from(item));
                    if !self.iterate(fold)? {
                        break;
                    }
                }
            }
            (Value::List(list), Some(second)) => {
                for index in 0..list.len() {
                    let Some(item) = list.get(index) else { break };
                    self.set(fold.first, Slot::Value(Value::Int(i64::try_from(index).unwrap_or(i64::MAX))));
                    self.set(second, Slot::from(item));
                    if !self.iterate(fold)? {
                        break;
                    }
                }
            }
            (Value::Map(map), second) => {
                for key in map.keys() {
                    if let Some(second) = second {
                        let value = map.find(&key).map(|value| value.unwrap_or(Value::Null));
                        self.set(second, Slot::from(value));
                    }
                    self.set(fold.first, Slot::Value(key));
                    if !self.iterate(fold)? {
                        break;
                    }
                }
            }
            (other, None) => {
                let name = other.implementation_name();
                return Err(EvaluationError::failed(format!("got '{name}', expected iterable type")));
            }
            (other, Some(_)) => {
                let name = other.implementation_name();
                return Err(EvaluationError::failed(format!("unsupported comprehension range type: {name}")));
            }
        }
        self.set(fold.first, Slot::Empty);
        let result = self.evaluate(&fold.result);
        self.set(fold.accumulator, Slot::Empty);
        result
    }

    /// Evaluates one iteration of a macro; returns whether to continue.
    fn iterate(&mut self, fold: &'a Fold) -> Result<bool, EvaluationError> {
        match self.evaluate(&fold.condition) {
            Ok(Value::Bool(false)) => return Ok(false),
            Err(error) if error.ends_evaluation() => return Err(error),
            _ => {}
        }
        let step = self.evaluate(&fold.step);
        match step {
            Err(error) if error.ends_evaluation() => return Err(error),
            step => self.set(fold.accumulator, Slot::from(step)),
        }
        Ok(true)
    }
}

/// Checks that a value is of a type that steps of paths may have.
pub(super) fn check_qualifier(index: &Value<'_>) -> Result<(), String> {
    match index {
        Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::String(_) => Ok(()),
        other => Err(format!("invalid qualifier type: {}", other.implementation_name())),
    }
}

/// Returns the value at a key or position.
fn lookup<'a>(value: &Value<'a>, index: &Value<'_>) -> Result<Option<Value<'a>>, EvaluationError> {
    let list = match value {
        Value::Map(map) => return map.find(index),
        Value::List(list) => list,
        Value::Object(object) => return object.find(index),
        _ => return Ok(None),
    };
    let position = match index {
        Value::Int(position) => Some(*position),
        Value::Uint(position) => i64::try_from(*position).ok(),
        Value::Double(position) => exact_int(*position),
        other => {
            let name = other.type_name();
            return Err(EvaluationError::failed(format!("unsupported index type '{name}' in list")));
        }
    };
    let Some(position) = position else {
        let index = index.display();
        return Err(EvaluationError::failed(format!("unsupported index value {index} in list")));
    };
    let found = usize::try_from(position).ok().and_then(|position| list.get(position));
    if found.is_some() && list.has_schema() && !matches!(index, Value::Int(_)) {
        return Err(EvaluationError::failed(format!("unsupported index: {}", index.display())));
    }
    found.transpose()
}

/// The error of a step without a value.
fn missing(value: &Value<'_>, index: &Value<'_>) -> EvaluationError {
    let index = index.display();
    EvaluationError::failed(match value {
        Value::List(_) => format!("index out of bounds: {index}"),
        _ => format!("no such key: {index}"),
    })
}
