//! Validates lists and maps of this group's kinds: their size, and each item.

use pintle_machinery::{ErrorList, FieldError, FieldPath, Map, Value};
use std::collections::HashSet;

/// Validates the size of a list, and each item. Items of a list that is too long are not validated.
pub(super) fn each(
    items: &[Value],
    max: usize,
    path: &FieldPath,
    item: impl Fn(&Value, &FieldPath) -> ErrorList,
) -> ErrorList {
    if items.len() > max {
        return vec![FieldError::too_many(path, items.len(), max)];
    }
    items.iter().enumerate().flat_map(|(index, value)| item(value, &path.index(index))).collect()
}

/// As [`each`], for items with unique keys.
pub(super) fn each_unique(
    items: &[Value],
    max: usize,
    path: &FieldPath,
    key: impl Fn(&Value) -> Value,
    item: impl Fn(&Value, &FieldPath) -> ErrorList,
) -> ErrorList {
    if items.len() > max {
        return each(items, max, path, item);
    }
    let mut errors = each(items, max, path, item);
    errors.extend(duplicates(items, path, key));
    errors
}

/// An error for each item with the key of an earlier one.
pub(super) fn duplicates(items: &[Value], path: &FieldPath, key: impl Fn(&Value) -> Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut keys: HashSet<Value> = HashSet::new();
    for (index, item) in items.iter().enumerate() {
        let key = key(item);
        if keys.contains(&key) {
            errors.push(FieldError::duplicate(&path.index(index), key));
        } else {
            keys.insert(key);
        }
    }
    errors
}

/// Validates the keys and values of a map; paths show keys up to a maximum length.
pub(super) fn each_entry(
    map: &Map,
    path: &FieldPath,
    shown_key_length: usize,
    key: impl Fn(&str, &FieldPath) -> ErrorList,
    value: impl Fn(&Value, &FieldPath) -> ErrorList,
) -> ErrorList {
    let mut errors = ErrorList::new();
    for (name, entry) in map {
        errors.extend(key(name, path));
        errors.extend(value(entry, &path.key(&shortened(name, shown_key_length))));
    }
    errors
}

/// A text whose middle is left out when it is too long.
fn shortened(text: &str, max: usize) -> String {
    const ELLIPSIS: &str = "...";
    if text.len() <= max {
        return text.to_owned();
    }
    let remaining = max.saturating_sub(ELLIPSIS.len());
    let bytes = text.as_bytes();
    let head = bytes.get(..remaining.div_ceil(2)).unwrap_or_default();
    let tail = bytes.get(bytes.len() - remaining / 2..).unwrap_or_default();
    format!("{}{ELLIPSIS}{}", String::from_utf8_lossy(head), String::from_utf8_lossy(tail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_keys_lose_their_middle() {
        let check = |text: &str, expected: &str| assert_eq!(shortened(text, 16), expected);
        check("abc", "abc");
        check("0123456789abcdef", "0123456789abcdef");
        check("0123456789abcdefg", "0123456...bcdefg");
    }
}
