//! Concatenates lists.

use super::equality::merge_key;
use super::{List, Value};
use crate::EvaluationError;
use crate::schema::ListType;

impl<'a> List<'a> {
    /// Concatenates two lists. For lists of objects the list type applies: sets add missing items, maps replace items
    /// with the same key, and other lists append.
    pub(crate) fn join(mut self, other: List<'a>) -> Result<List<'a>, EvaluationError> {
        let Some(schema) = self.schema() else {
            if self.is_empty() {
                return Ok(other);
            }
            if !other.is_empty() && !self.extend(&other) {
                self = self.followed_by(other)?;
            }
            return Ok(self);
        };
        let mut items = Vec::with_capacity(self.len() + other.len());
        for item in self.iter() {
            items.push(item?);
        }
        match schema.list_type() {
            ListType::Atomic => {
                for item in other.iter() {
                    items.push(item?);
                }
            }
            ListType::Set => {
                let mut seen: std::collections::HashSet<_> =
                    items.iter().filter_map(Value::scalar_key).collect();
                let mut added = Vec::new();
                for item in other.iter() {
                    let item = item?;
                    if item.scalar_key().is_none_or(|key| seen.insert(key)) {
                        added.push(item);
                    }
                }
                items.extend(added);
            }
            ListType::Map(keys) => {
                let mut positions: std::collections::HashMap<_, _> = items
                    .iter()
                    .enumerate()
                    .filter_map(|(position, item)| Some((merge_key(item, keys)?, position)))
                    .collect();
                for item in other.iter() {
                    let item = item?;
                    let key = merge_key(&item, keys);
                    let position = key.as_ref().and_then(|key| positions.get(key).copied());
                    match position.and_then(|position| items.get_mut(position)) {
                        Some(place) => *place = item,
                        None => {
                            positions.extend(key.map(|key| (key, items.len())));
                            items.push(item);
                        }
                    }
                }
            }
        }
        Ok(List::merged(items, schema))
    }
}
