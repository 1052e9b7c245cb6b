//! Lists: views of JSON, computed lists, and concatenations without copying.

use super::adapt::{adapt, adapt_untyped};
use super::{Json, Value};
use crate::EvaluationError;
use crate::schema::Schema;
use crate::work;
use std::sync::Arc;

/// The maximum length of a computed list. Cost budgets do not suffice to visit longer lists.
pub(crate) const MAX_LIST_LENGTH: usize = 1 << 20;

/// A list of values.
///
/// Concatenation shares both lists, so that repeated concatenation of a list with itself costs no memory; the size of
/// the expression bounds the length of the chain.
#[derive(Clone, Debug)]
pub struct List<'a>(Repr<'a>);

#[derive(Clone, Debug)]
enum Repr<'a> {
    /// A list of an object, with the list's own schema if it has one.
    Json(&'a [Json], Option<&'a dyn Schema>),
    /// A computed list.
    Values(Arc<Vec<Value<'a>>>),
    /// A concatenation.
    Joined(Arc<Joined<'a>>),
    /// A list of an object merged with another list. It keeps the schema, and so the meaning of `==` and `+`.
    Merged(Arc<Vec<Value<'a>>>, &'a dyn Schema),
}

#[derive(Debug)]
struct Joined<'a> {
    left: List<'a>,
    right: List<'a>,
    len: usize,
}

impl<'a> List<'a> {
    /// A list of an object. Without a schema, JSON determines the types of items.
    pub fn json(items: &'a [Json], schema: Option<&'a dyn Schema>) -> List<'a> {
        List(Repr::Json(items, schema))
    }

    /// The same items, whose types JSON determines.
    pub(super) fn without_schema(&self) -> List<'a> {
        match &self.0 {
            Repr::Json(items, _) => List::json(items, None),
            Repr::Merged(items, _) => List(Repr::Values(items.clone())),
            Repr::Values(_) | Repr::Joined(_) => self.clone(),
        }
    }

    /// The number of items.
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Json(items, _) => items.len(),
            Repr::Values(items) | Repr::Merged(items, _) => items.len(),
            Repr::Joined(joined) => joined.len,
        }
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An item; an error if the data does not fit its schema, `None` beyond the end.
    pub fn get(&self, index: usize) -> Option<Result<Value<'a>, EvaluationError>> {
        if let Err(error) = work::count(1) {
            return (index < self.len()).then_some(Err(error));
        }
        let mut list = self;
        let mut index = index;
        loop {
            match &list.0 {
                Repr::Json(items, schema) => {
                    let item = items.get(index)?;
                    return Some(match schema {
                        None => Ok(adapt_untyped(item)),
                        Some(schema) => schema
                            .items()
                            .ok_or_else(|| {
                                "invalid array type, expected Items with a non-empty Schema".into()
                            })
                            .and_then(|items| adapt(item, items)),
                    });
                }
                Repr::Values(items) | Repr::Merged(items, _) => return items.get(index).cloned().map(Ok),
                Repr::Joined(joined) => match index.checked_sub(joined.left.len()) {
                    None => list = &joined.left,
                    Some(rest) => (list, index) = (&joined.right, rest),
                },
            }
        }
    }

    /// The items, front to back.
    pub fn iter(&self) -> impl Iterator<Item = Result<Value<'a>, EvaluationError>> + '_ {
        (0..self.len()).map_while(|index| self.get(index))
    }

    /// The schema of a list of an object, if it has one.
    pub(super) fn schema(&self) -> Option<&'a dyn Schema> {
        match &self.0 {
            Repr::Json(_, schema) => *schema,
            Repr::Merged(_, schema) => Some(*schema),
            Repr::Values(_) | Repr::Joined(_) => None,
        }
    }

    /// Whether this is a list of an object with a schema, or one merged with such a list.
    pub(crate) fn has_schema(&self) -> bool {
        self.schema().is_some()
    }

    /// Whether the expression computed the list, or a part of it.
    pub(crate) fn is_computed(&self) -> bool {
        !matches!(self.0, Repr::Json(..))
    }

    /// The JSON of an item, for lists of objects.
    pub(super) fn raw(&self, index: usize) -> Option<&'a Json> {
        match &self.0 {
            Repr::Json(items, _) => items.get(index),
            _ => None,
        }
    }

    /// Appends one item in place if this list is not shared, as `map` and `filter` do for each of their items.
    pub(super) fn extend(&mut self, other: &List<'a>) -> bool {
        let (Repr::Values(items), Repr::Values(others)) = (&mut self.0, &other.0) else { return false };
        let [item] = others.as_slice() else { return false };
        if items.len() == 1 {
            // `map` with a constant begins with the list that the expression itself holds. Joining lists to it would
            // make a chain as long as the list that is mapped, too long for a stack.
            Arc::make_mut(items);
        }
        match Arc::get_mut(items) {
            Some(items) => {
                items.push(item.clone());
                true
            }
            None => false,
        }
    }

    /// A list of an object merged with another list, with the schema of the former.
    pub(super) fn merged(items: Vec<Value<'a>>, schema: &'a dyn Schema) -> List<'a> {
        List(Repr::Merged(Arc::new(items), schema))
    }

    pub(super) fn followed_by(self, right: List<'a>) -> Result<List<'a>, EvaluationError> {
        let len = self.len() + right.len();
        match len > MAX_LIST_LENGTH {
            true => Err(EvaluationError::CostLimitExceeded),
            false => Ok(List(Repr::Joined(Arc::new(Joined { left: self, right, len })))),
        }
    }
}

impl<'a> From<Vec<Value<'a>>> for List<'a> {
    fn from(items: Vec<Value<'a>>) -> List<'a> {
        List(Repr::Values(Arc::new(items)))
    }
}
