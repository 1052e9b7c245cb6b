//! Selectors out of query strings.

use pintle_machinery::{FieldSelector, LabelSelector};

/// What parses is printed so that it parses to the same selector.
pub(crate) fn label_selector(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(selector) = LabelSelector::parse(text) {
        assert_eq!(LabelSelector::parse(&selector.to_string()).as_ref(), Ok(&selector));
        selector.matches(|key| Some(if key.len() % 2 == 0 { "1" } else { "a" }));
    }
}

/// What parses is printed so that it parses to the same selector, unless a field's name holds an operator.
pub(crate) fn field_selector(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(selector) = FieldSelector::parse(text) {
        let printed = FieldSelector::parse(&selector.to_string());
        if selector.terms().iter().all(|term| !term.field.contains(['\\', '!'])) {
            let mut terms: Vec<_> = printed.iter().flat_map(|selector| selector.terms().to_vec()).collect();
            let mut expected = selector.terms().to_vec();
            let key = |term: &pintle_machinery::selectors::FieldTerm| format!("{term:?}");
            terms.sort_by_key(key);
            expected.sort_by_key(key);
            assert_eq!(terms, expected);
        }
        selector.matches(|_| Some("a"));
    }
}
