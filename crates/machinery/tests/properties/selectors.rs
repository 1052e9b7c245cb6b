use pintle_machinery::selectors::{LabelOperator, LabelRequirement};
use pintle_machinery::{FieldSelector, LabelSelector};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn requirement() -> impl Strategy<Value = LabelRequirement> {
    let key = prop::sample::select(vec!["a", "b", "c.d/e"]);
    let values = prop::collection::vec(prop::sample::select(vec!["", "x", "y", "1", "5"]), 1..4);
    let operator = prop::sample::select(vec![
        LabelOperator::In,
        LabelOperator::NotIn,
        LabelOperator::Equals,
        LabelOperator::DoubleEquals,
        LabelOperator::NotEquals,
        LabelOperator::Exists,
        LabelOperator::DoesNotExist,
        LabelOperator::GreaterThan,
        LabelOperator::LessThan,
    ]);
    (key, operator, values).prop_map(|(key, operator, values)| {
        let values: Vec<String> = match operator {
            LabelOperator::In | LabelOperator::NotIn => values.into_iter().map(str::to_owned).collect(),
            LabelOperator::Exists | LabelOperator::DoesNotExist => Vec::new(),
            LabelOperator::GreaterThan | LabelOperator::LessThan => vec!["3".to_owned()],
            _ => vec![values[0].to_owned()],
        };
        LabelRequirement::new(key, operator, values).unwrap()
    })
}

fn labels() -> impl Strategy<Value = BTreeMap<&'static str, &'static str>> {
    let key = prop::sample::select(vec!["a", "b", "c.d/e"]);
    prop::collection::btree_map(key, prop::sample::select(vec!["", "x", "y", "1", "5"]), 0..3)
}

/// The rules of the documentation.
fn model(requirement: &LabelRequirement, labels: &BTreeMap<&str, &str>) -> bool {
    let value = labels.get(requirement.key()).copied();
    let listed = value.is_some_and(|value| requirement.values().iter().any(|own| own == value));
    let number = value.and_then(|value| value.parse::<i64>().ok());
    match requirement.operator() {
        LabelOperator::In | LabelOperator::Equals | LabelOperator::DoubleEquals => listed,
        LabelOperator::NotIn | LabelOperator::NotEquals => !listed,
        LabelOperator::Exists => value.is_some(),
        LabelOperator::DoesNotExist => value.is_none(),
        LabelOperator::GreaterThan => number.is_some_and(|number| number > 3),
        LabelOperator::LessThan => number.is_some_and(|number| number < 3),
    }
}

proptest! {
    #[test]
    fn selectors_match_as_documented(requirements in prop::collection::vec(requirement(), 0..4), labels in labels()) {
        let expected = requirements.iter().all(|requirement| model(requirement, &labels));
        let selector = LabelSelector::from_requirements(requirements);
        prop_assert_eq!(selector.matches(|key| labels.get(key).copied()), expected);
        let again = LabelSelector::parse(&selector.to_string()).unwrap();
        prop_assert_eq!(again, selector);
    }

    #[test]
    fn any_text_is_a_selector_or_none(text in "[ab/.,=!<>() innot\\\\]{0,24}|.{0,12}") {
        crate::smoke::selectors::label_selector(text.as_bytes());
        crate::smoke::selectors::field_selector(text.as_bytes());
    }

    #[test]
    fn field_values_are_escaped(value in ".{0,12}") {
        let selector = FieldSelector::one_term("metadata.name", &value);
        prop_assert_eq!(FieldSelector::parse(&selector.to_string()).unwrap(), selector);
    }
}
