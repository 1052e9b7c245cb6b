//! Evaluates templates on objects.

use super::node::{Filter, Node, Slice};
use crate::Value;
use std::cmp::Ordering;

/// The maximum number of values that one evaluation visits. A list of a thousand objects needs far fewer.
pub(super) const MAX_WORK: usize = 1_000_000;
/// The maximum nesting depth of ranges.
const MAX_RANGES: usize = 16;

/// A value that a template selects.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Selected<'a> {
    /// A value of the object or of the template.
    Value(&'a Value),
    /// A byte of a text: wildcards split texts into bytes.
    Byte(u8),
}

/// The error of an evaluation that met an impossible step or exceeded its budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CannotWalk;

type Values<'a> = Vec<Selected<'a>>;

/// A failed step. A filter that only tests for existence needs to know whether the step still had values.
struct Failed {
    had_values: bool,
}

const WITH_VALUES: Failed = Failed { had_values: true };
const WITHOUT_VALUES: Failed = Failed { had_values: false };

/// One evaluation of a template.
pub(super) struct Evaluation<'w> {
    /// The number of values that may still be visited.
    left: &'w mut usize,
    begin_range: usize,
    in_range: usize,
    end_range: usize,
    /// The number of nodes after the last `end`; its position, counted from the end.
    behind_end: Option<usize>,
}

impl<'w> Evaluation<'w> {
    pub(super) fn new(left: &'w mut usize) -> Evaluation<'w> {
        Evaluation { left, begin_range: 0, in_range: 0, end_range: 0, behind_end: None }
    }

    fn spend(&mut self, values: usize) -> Result<(), Failed> {
        let left = self.left.checked_sub(values);
        *self.left = left.unwrap_or(0);
        left.map(drop).ok_or(WITHOUT_VALUES)
    }

    /// Returns the values that each node selects.
    pub(super) fn find<'a>(
        mut self,
        nodes: &'a [Node],
        object: &'a Value,
    ) -> Result<Vec<Values<'a>>, CannotWalk> {
        self.find_at(nodes, Selected::Value(object)).map_err(|_| CannotWalk)
    }

    fn find_at<'a>(&mut self, nodes: &'a [Node], object: Selected<'a>) -> Result<Vec<Values<'a>>, Failed> {
        let mut found = Vec::new();
        let mut nodes = nodes.iter();
        while let Some(node) = nodes.next() {
            let results = self.walk(vec![object], node)?;
            let rest = nodes.as_slice();
            if self.end_range > 0 && self.end_range <= self.in_range {
                self.end_range -= 1;
                self.behind_end = Some(rest.len());
                break;
            }
            if self.begin_range == 0 {
                found.push(results);
                continue;
            }
            self.begin_range -= 1;
            self.in_range += 1;
            if self.in_range > MAX_RANGES {
                return Err(WITHOUT_VALUES);
            }
            if results.is_empty() {
                // The end of the range must be found even without values.
                self.find_at(rest, Selected::Value(&Value::Null))?;
            }
            for item in results {
                found.extend(self.find_at(rest, item)?);
            }
            self.in_range -= 1;
            // Continues after the end of the range.
            if let Some(behind) = self.behind_end.filter(|behind| *behind < rest.len()) {
                nodes = rest.get(rest.len() - behind..).unwrap_or_default().iter();
            }
        }
        Ok(found)
    }

    fn walk<'a>(&mut self, input: Values<'a>, node: &'a Node) -> Result<Values<'a>, Failed> {
        self.spend(1 + input.len())?;
        match node {
            Node::List(nodes) => nodes.iter().try_fold(input, |values, node| self.walk(values, node)),
            // A text is one result, independently of the input; other literals yield one result per input value.
            Node::Literal(text @ Value::String(_)) => Ok(vec![Selected::Value(text)]),
            Node::Literal(literal) => Ok(vec![Selected::Value(literal); input.len()]),
            Node::Field(name) => Ok(input.into_iter().filter_map(|value| member(value, name)).collect()),
            Node::Wildcard => Ok(input.into_iter().flat_map(children).collect()),
            Node::Recursive => self.recursive(input),
            Node::Slice(slice) => items(input, *slice),
            Node::Filter(filter) => self.filter(input, filter),
            Node::Union(lists) => {
                let mut values = Vec::new();
                for list in lists {
                    let selected = self.walk(input.clone(), list);
                    values.extend(selected.map_err(|_| Failed { had_values: !input.is_empty() })?);
                }
                Ok(values)
            }
            Node::Identifier(word) => self.identifier(input, word),
        }
    }

    fn identifier<'a>(&mut self, input: Values<'a>, word: &str) -> Result<Values<'a>, Failed> {
        match word {
            "range" => {
                self.begin_range += 1;
                Ok(input)
            }
            "end" if self.in_range > 0 => {
                self.end_range += 1;
                Ok(Vec::new())
            }
            "end" => Err(WITHOUT_VALUES),
            _ => Err(Failed { had_values: !input.is_empty() }),
        }
    }

    /// All non-empty values, each before its content, and all their descendants.
    fn recursive<'a>(&mut self, input: Values<'a>) -> Result<Values<'a>, Failed> {
        let mut found = Vec::new();
        let mut waiting: Values<'a> = input.into_iter().rev().collect();
        while let Some(value) = waiting.pop() {
            let children = children(value);
            self.spend(children.len())?;
            if !children.is_empty() {
                found.push(value);
                waiting.extend(children.into_iter().rev());
            }
        }
        Ok(found)
    }

    fn filter<'a>(&mut self, input: Values<'a>, filter: &'a Filter) -> Result<Values<'a>, Failed> {
        let mut passed = Vec::new();
        for value in input {
            let Selected::Value(Value::Array(list)) = value else { return Err(WITH_VALUES) };
            for item in list {
                let item = Selected::Value(item);
                let left = self.walk(vec![item], &filter.left);
                if &*filter.operator == "exists" {
                    let exists = match left {
                        Ok(values) => !values.is_empty(),
                        Err(failed) => failed.had_values,
                    };
                    passed.extend(exists.then_some(item));
                    continue;
                }
                let left = only(&left.map_err(|_| WITH_VALUES)?)?;
                let Some(left) = left else { continue };
                let right = self.walk(vec![item], &filter.right).map_err(|_| WITH_VALUES)?;
                let Some(right) = only(&right)? else { continue };
                let passes = compare(left, &filter.operator, right);
                if passes.ok_or(Failed { had_values: !passed.is_empty() })? {
                    passed.push(item);
                }
            }
        }
        Ok(passed)
    }
}

/// The only value, if there is one; several values cannot be compared.
fn only<'a>(values: &[Selected<'a>]) -> Result<Option<Selected<'a>>, Failed> {
    match values {
        [] => Ok(None),
        [value] => Ok(Some(*value)),
        _ => Err(WITH_VALUES),
    }
}

fn member<'a>(value: Selected<'a>, name: &str) -> Option<Selected<'a>> {
    match value {
        Selected::Value(Value::Object(members)) => members.get(name).map(Selected::Value),
        _ => None,
    }
}

/// Members, items, or the bytes of a text.
fn children(value: Selected<'_>) -> Values<'_> {
    match value {
        Selected::Value(Value::Object(members)) => members.values().map(Selected::Value).collect(),
        Selected::Value(Value::Array(items)) => items.iter().map(Selected::Value).collect(),
        Selected::Value(Value::String(text)) => text.bytes().map(Selected::Byte).collect(),
        _ => Vec::new(),
    }
}

fn items(input: Values<'_>, slice: Slice) -> Result<Values<'_>, Failed> {
    let mut found = Vec::new();
    for value in input {
        let list = match value {
            Selected::Value(Value::Array(list)) => list,
            Selected::Value(Value::Null) => continue,
            _ => return Err(WITH_VALUES),
        };
        let length = list.len() as i64;
        let mut start = slice.start.unwrap_or(0);
        if start < 0 {
            start = start.saturating_add(length);
        }
        let mut end = slice.end.unwrap_or(length);
        if end < 0 || (end == 0 && slice.end_is_derived) {
            end = end.saturating_add(length);
        }
        if start == end {
            return Ok(found);
        }
        if start < 0 || start >= length || end < 0 || end > length || start > end {
            return Err(WITH_VALUES);
        }
        let step = slice.step.unwrap_or(1);
        let (Ok(start), Ok(end), Ok(step)) =
            (usize::try_from(start), usize::try_from(end), usize::try_from(step))
        else {
            return Err(WITH_VALUES);
        };
        if step == 0 {
            return Err(WITH_VALUES);
        }
        let selected = list.get(start..end).unwrap_or_default().iter().step_by(step);
        found.extend(selected.map(Selected::Value));
    }
    Ok(found)
}

/// Evaluates the comparison; `None` when the two values cannot be compared with this operator.
fn compare(left: Selected<'_>, operator: &str, right: Selected<'_>) -> Option<bool> {
    let (ordering, has_order) = order(left, right)?;
    let ordered = |holds: bool| has_order.then_some(holds);
    match operator {
        "==" => Some(ordering == Ordering::Equal),
        "!=" => Some(ordering != Ordering::Equal),
        "<" => ordered(ordering == Ordering::Less),
        "<=" => ordered(ordering != Ordering::Greater),
        ">" => ordered(ordering == Ordering::Greater),
        ">=" => ordered(ordering != Ordering::Less),
        _ => None,
    }
}

/// Returns the ordering of two scalars of the same type, and whether the type is ordered: booleans are not. Integers
/// and floats are two types.
fn order(left: Selected<'_>, right: Selected<'_>) -> Option<(Ordering, bool)> {
    let integer = |value: Selected<'_>| match value {
        Selected::Byte(byte) => Some(i128::from(byte)),
        Selected::Value(Value::Number(number)) => {
            number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
        }
        Selected::Value(_) => None,
    };
    if let (Some(left), Some(right)) = (integer(left), integer(right)) {
        return Some((left.cmp(&right), true));
    }
    let (Selected::Value(left), Selected::Value(right)) = (left, right) else { return None };
    match (left, right) {
        (Value::String(left), Value::String(right)) => Some((left.cmp(right), true)),
        (Value::Bool(left), Value::Bool(right)) => Some((left.cmp(right), false)),
        (Value::Number(left), Value::Number(right)) if left.is_f64() && right.is_f64() => {
            let ordering = left.as_f64()?.partial_cmp(&right.as_f64()?)?;
            Some((ordering, true))
        }
        _ => None,
    }
}
