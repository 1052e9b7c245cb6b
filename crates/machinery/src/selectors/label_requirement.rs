//! The requirements of label selectors.

use super::SelectorError;
use crate::status::aggregate;
use crate::validation::{is_qualified_name, is_valid_label_value};
use crate::{ErrorList, FieldError, FieldPath};
use std::fmt;

/// The operator of a requirement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the API's own and say it")]
pub enum LabelOperator {
    In,
    NotIn,
    Equals,
    DoubleEquals,
    NotEquals,
    Exists,
    DoesNotExist,
    GreaterThan,
    LessThan,
}

/// A requirement on one label. Two are equal if they compare with the same set of values.
#[derive(Debug, Clone, Eq)]
pub struct LabelRequirement {
    key: String,
    operator: LabelOperator,
    /// Sorted, without duplicates.
    values: Vec<String>,
    /// The values in their original order, if it is another one.
    given: Option<Vec<String>>,
    /// The operand of `>` and `<`.
    bound: i64,
}

impl PartialEq for LabelRequirement {
    fn eq(&self, other: &LabelRequirement) -> bool {
        let LabelRequirement { key, operator, values, given: _, bound } = self;
        (key, operator, values, bound) == (&other.key, &other.operator, &other.values, &other.bound)
    }
}

impl LabelRequirement {
    /// Creates a requirement.
    ///
    /// # Errors
    /// When the key or a value is not valid for a label, or the number of values does not fit the operator.
    pub fn new(
        key: &str,
        operator: LabelOperator,
        values: Vec<String>,
    ) -> Result<LabelRequirement, SelectorError> {
        let mut errors = ErrorList::new();
        errors.extend(validate_key(key, &FieldPath::new("key")));
        let path = FieldPath::new("values");
        let count_detail = match operator {
            LabelOperator::In | LabelOperator::NotIn if values.is_empty() => {
                Some("for 'in', 'notin' operators, values set can't be empty")
            }
            LabelOperator::Equals | LabelOperator::DoubleEquals | LabelOperator::NotEquals
                if values.len() != 1 =>
            {
                Some("exact-match compatibility requires one single value")
            }
            LabelOperator::Exists | LabelOperator::DoesNotExist if !values.is_empty() => {
                Some("values set must be empty for exists and does not exist")
            }
            LabelOperator::GreaterThan | LabelOperator::LessThan if values.len() != 1 => {
                Some("for 'Gt', 'Lt' operators, exactly one value is required")
            }
            _ => None,
        };
        errors.extend(count_detail.map(|detail| FieldError::invalid(&path, values.clone(), detail)));
        let mut bound = 0;
        if matches!(operator, LabelOperator::GreaterThan | LabelOperator::LessThan) {
            for (index, value) in values.iter().enumerate() {
                match value.parse() {
                    Ok(number) => bound = number,
                    Err(_) => {
                        let detail = "for 'Gt', 'Lt' operators, the value must be an integer";
                        errors.push(FieldError::invalid(&path.index(index), value.as_str(), detail));
                    }
                }
            }
        }
        for (index, value) in values.iter().enumerate() {
            let messages = is_valid_label_value(value);
            if !messages.is_empty() {
                let path = path.index(index).key(key);
                errors.push(FieldError::invalid(&path, value.as_str(), messages.join("; ")));
            }
        }
        if !errors.is_empty() {
            return Err(SelectorError(aggregate(errors.iter().map(ToString::to_string))));
        }
        let mut sorted = values.clone();
        sorted.sort_unstable();
        sorted.dedup();
        let given = (sorted != values).then_some(values);
        Ok(LabelRequirement { key: key.to_owned(), operator, values: sorted, given, bound })
    }

    /// An unvalidated requirement that the label has this value.
    pub(super) fn equals(key: String, value: String) -> LabelRequirement {
        LabelRequirement { key, operator: LabelOperator::Equals, values: vec![value], given: None, bound: 0 }
    }

    /// The label's key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The operand of `>` and `<`.
    pub(super) fn bound(&self) -> i64 {
        self.bound
    }

    /// The operator.
    pub fn operator(&self) -> LabelOperator {
        self.operator
    }

    /// The values to compare with, sorted.
    pub fn values(&self) -> &[String] {
        &self.values
    }

    /// The values in the order in which they were given, perhaps with duplicates.
    pub fn given_values(&self) -> &[String] {
        self.given.as_deref().unwrap_or(&self.values)
    }

    /// Whether a label with this value (or an absent label) meets the requirement.
    pub fn matches(&self, value: Option<&str>) -> bool {
        let has = |value: &str| self.values.binary_search_by(|own| own.as_str().cmp(value)).is_ok();
        let number = |value: &str| value.parse::<i64>().ok();
        match (self.operator, value) {
            (LabelOperator::In | LabelOperator::Equals | LabelOperator::DoubleEquals, value) => {
                value.is_some_and(has)
            }
            (LabelOperator::NotIn | LabelOperator::NotEquals, value) => !value.is_some_and(has),
            (LabelOperator::Exists, value) => value.is_some(),
            (LabelOperator::DoesNotExist, value) => value.is_none(),
            (LabelOperator::GreaterThan, value) => value.and_then(number).is_some_and(|it| it > self.bound),
            (LabelOperator::LessThan, value) => value.and_then(number).is_some_and(|it| it < self.bound),
        }
    }
}

impl fmt::Display for LabelRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut values: Vec<&str> = self.given_values().iter().map(String::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        match self.operator {
            LabelOperator::DoesNotExist => write!(f, "!{}", self.key),
            LabelOperator::Exists => f.write_str(&self.key),
            LabelOperator::Equals => write!(f, "{}={values}", self.key),
            LabelOperator::DoubleEquals => write!(f, "{}=={values}", self.key),
            LabelOperator::NotEquals => write!(f, "{}!={values}", self.key),
            LabelOperator::In => write!(f, "{} in ({values})", self.key),
            LabelOperator::NotIn => write!(f, "{} notin ({values})", self.key),
            LabelOperator::GreaterThan => write!(f, "{}>{values}", self.key),
            LabelOperator::LessThan => write!(f, "{}<{values}", self.key),
        }
    }
}

pub(super) fn validate_key(key: &str, path: &FieldPath) -> Option<FieldError> {
    let messages = is_qualified_name(key);
    (!messages.is_empty()).then(|| FieldError::invalid(path, key, messages.join("; ")))
}
