//! Fuzzes the selectors of query strings.

use pintle_machinery::{FieldSelector, LabelSelector};
use std::collections::BTreeMap;

/// A printed selector parses to the same selector, and all requirements together select the same labels as one after
/// the other.
pub(crate) fn label_selector(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(selector) = LabelSelector::parse(text) else { return };
    assert_eq!(LabelSelector::parse(&selector.to_string()).as_ref(), Ok(&selector));
    let requirements = selector.requirements();
    for step in 1..4 {
        // Labels with values of the requirements, and others.
        let labels: BTreeMap<&str, &str> = requirements
            .iter()
            .step_by(step)
            .enumerate()
            .map(|(at, requirement)| {
                let own = requirement.values().get(at % (requirement.values().len() + 1));
                (requirement.key(), own.map_or(if at % 2 == 0 { "7" } else { "" }, String::as_str))
            })
            .chain([("other", "1")])
            .collect();
        let label = |key: &str| labels.get(key).copied();
        let expected = requirements.iter().all(|requirement| requirement.matches(label(requirement.key())));
        assert_eq!(selector.matches(label), expected);
        assert_eq!(selector.matches_all(labels.iter().map(|(key, value)| (*key, *value)), label), expected);
        for requirement in requirements.iter().take(16) {
            if let Some(value) = selector.requires_exact_match(requirement.key()) {
                assert!(!expected || label(requirement.key()) == Some(value));
            }
        }
    }
}

/// A printed selector parses to the same selector, unless a field's name contains an operator.
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
