//! Validates priority levels.

use crate::{flowcontrol::conditions, rules};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt, json, meta::ObjectMeta};

const EXEMPT: &str = "exempt";
const CATCH_ALL: &str = "catch-all";
/// An annotation of an old version that later versions do not use.
const PRESERVE_ZERO_SHARES: &str = "flowcontrol.k8s.io/preserve-zero-concurrency-shares";
const MAX_QUEUES: i64 = 10_000_000;
/// The number of hash bits available for shuffle sharding.
const MAX_HASH_BITS: u32 = 60;

/// Validates a level, new or changed.
pub(super) fn validate(level: &Value) -> ErrorList {
    let mut errors = rules::metadata(level, false);
    if level.annotation(PRESERVE_ZERO_SHARES).is_some() {
        let path = FieldPath::new("metadata").child("annotations");
        let detail = format!("annotation '{PRESERVE_ZERO_SHARES}' is forbidden");
        errors.push(FieldError::forbidden(&path, detail));
    }
    errors.extend(validate_spec(level));
    errors.extend(validate_mandatory(level));
    errors.extend(conditions::validate(level));
    errors
}

fn validate_spec(level: &Value) -> ErrorList {
    let path = FieldPath::new("spec");
    let mut errors = ErrorList::new();
    let level_type = level.str_at("spec.type");
    if (level.name() == EXEMPT) != (level_type == "Exempt") {
        let detail = "must be 'Exempt' if and only if `name` is 'exempt'";
        errors.push(FieldError::invalid(&path.child("type"), level_type, detail).of_named_type());
    }
    let (exempt, limited) = (level.at("spec.exempt"), level.at("spec.limited"));
    let (exempt_path, limited_path) = (path.child("exempt"), path.child("limited"));
    match level_type {
        "Exempt" => {
            if limited.is_some() {
                let detail = "must be nil if the type is not Limited";
                errors.push(FieldError::forbidden(&limited_path, detail));
            }
            if let Some(exempt) = exempt {
                errors.extend(validate_shares(exempt, &exempt_path));
                errors.extend(validate_lendable(exempt, &exempt_path));
            }
        }
        "Limited" => {
            if exempt.is_some() {
                errors.push(FieldError::forbidden(&exempt_path, "must be nil if the type is Limited"));
            }
            match limited {
                Some(limited) => errors.extend(validate_limited(limited, &limited_path)),
                None => {
                    let detail = "must not be empty when type is Limited";
                    errors.push(FieldError::required(&limited_path, detail));
                }
            }
        }
        other => {
            errors.push(FieldError::not_supported(&path.child("type"), other, &["Exempt", "Limited"]));
        }
    }
    errors
}

fn validate_limited(limited: &Value, path: &FieldPath) -> ErrorList {
    let mut errors = validate_shares(limited, path);
    errors.extend(validate_response(rules::value_at(limited, "limitResponse"), &path.child("limitResponse")));
    errors.extend(validate_lendable(limited, path));
    if let Some(percent) = limited.i64_at("borrowingLimitPercent").filter(|percent| *percent < 0) {
        let detail = "if specified, must be a non-negative integer";
        errors.push(FieldError::invalid(&path.child("borrowingLimitPercent"), percent, detail));
    }
    errors
}

fn validate_shares(holder: &Value, path: &FieldPath) -> ErrorList {
    let shares = holder.i64_at("nominalConcurrencyShares").filter(|shares| *shares < 0);
    let path = path.child("nominalConcurrencyShares");
    shares
        .map(|shares| FieldError::invalid(&path, shares, "must be a non-negative integer"))
        .into_iter()
        .collect()
}

fn validate_lendable(holder: &Value, path: &FieldPath) -> ErrorList {
    let percent = holder.i64_at("lendablePercent").filter(|percent| !(0..=100).contains(percent));
    let path = path.child("lendablePercent");
    let detail = "must be between 0 and 100, inclusive";
    percent.map(|percent| FieldError::invalid(&path, percent, detail)).into_iter().collect()
}

fn validate_response(response: &Value, path: &FieldPath) -> ErrorList {
    let queuing_path = path.child("queuing");
    match (response.str_at("type"), response.at("queuing")) {
        ("Reject", None) => ErrorList::new(),
        ("Reject", Some(_)) => {
            let detail = "must be nil if limited.limitResponse.type is not Limited";
            vec![FieldError::forbidden(&queuing_path, detail)]
        }
        ("Queue", None) => {
            let detail = "must not be empty if limited.limitResponse.type is Limited";
            vec![FieldError::required(&queuing_path, detail)]
        }
        ("Queue", Some(queuing)) => validate_queuing(queuing, &queuing_path),
        (other, _) => vec![FieldError::not_supported(&path.child("type"), other, &["Queue", "Reject"])],
    }
}

fn validate_queuing(queuing: &Value, path: &FieldPath) -> ErrorList {
    let number = |field: &str| queuing.i64_at(field).unwrap_or_default();
    let mut errors = ErrorList::new();
    let mut refuse = |field: &str, detail: &str| {
        errors.push(FieldError::invalid(&path.child(field), number(field), detail));
    };
    if number("queueLengthLimit") <= 0 {
        refuse("queueLengthLimit", "must be positive");
    }
    let (queues, hand) = (number("queues"), number("handSize"));
    if queues <= 0 {
        refuse("queues", "must be positive");
    } else if queues > MAX_QUEUES {
        refuse("queues", &format!("must not be greater than {MAX_QUEUES}"));
    }
    if hand <= 0 {
        refuse("handSize", "must be positive");
    } else if hand > queues {
        refuse("handSize", &format!("should not be greater than queues ({queues})"));
    } else if hash_bits(queues, hand) > f64::from(MAX_HASH_BITS) {
        let detail = format!(
            "required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {MAX_HASH_BITS}"
        );
        refuse("handSize", &detail);
    }
    errors
}

/// The number of hash bits that shuffle sharding needs for a hand of this size from this number of queues.
fn hash_bits(queues: i64, hand: i64) -> f64 {
    // Both have 32 bits, which a float represents exactly.
    #[expect(clippy::cast_precision_loss, reason = "the numbers have 32 bits")]
    let (queues, hand) = (queues as f64, hand as f64);
    (queues.log2() * hand).ceil()
}

/// Requires that the mandatory levels are unchanged, except for the shares of the exempt one.
fn validate_mandatory(level: &Value) -> ErrorList {
    let (fixed, but_for) = match level.name() {
        EXEMPT => (json!({"type": "Exempt"}), " except the 'spec.exempt' field"),
        CATCH_ALL => (
            json!({"type": "Limited", "limited": {
                "limitResponse": {"type": "Reject"}, "lendablePercent": 0, "nominalConcurrencyShares": 5}}),
            "",
        ),
        _ => return ErrorList::new(),
    };
    let spec = rules::value_at(level, "spec");
    let mut compared = json!({"spec": spec});
    if level.name() == EXEMPT {
        compared.remove_at("spec.exempt");
    }
    if !rules::differs(&compared, &json!({"spec": fixed}), "spec") {
        return ErrorList::new();
    }
    let detail = format!("spec of '{}'{but_for} must equal the fixed value", level.name());
    let error = FieldError::invalid(&FieldPath::new("spec"), spec.clone(), detail);
    vec![pintle_internal_form::show(error, "flowcontrol.PriorityLevelConfigurationSpec")]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, spec: Value, expected: &[&str]) {
        let errors = validate(&json!({"metadata": {"name": name}, "spec": spec}));
        assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn levels_are_checked() {
        check("a", json!({"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}), &[]);
        check(
            "a",
            json!({}),
            &[r#"spec.type: Unsupported value: "": supported values: "Exempt", "Limited""#],
        );
        check(
            "a",
            json!({"type": "Limited", "exempt": {}}),
            &[
                "spec.exempt: Forbidden: must be nil if the type is Limited",
                "spec.limited: Required value: must not be empty when type is Limited",
            ],
        );
        check(
            "a",
            json!({"type": "Limited", "limited": {"limitResponse": {"type": "Reject", "queuing": {}}, "lendablePercent": 101}}),
            &[
                "spec.limited.limitResponse.queuing: Forbidden: must be nil if limited.limitResponse.type is not Limited",
                "spec.limited.lendablePercent: Invalid value: 101: must be between 0 and 100, inclusive",
            ],
        );
    }

    #[test]
    fn queues_can_be_dealt() {
        let check = |queues: i64, hand: i64, expected: &[&str]| {
            let queuing = json!({"queues": queues, "handSize": hand, "queueLengthLimit": 1});
            let errors = validate_queuing(&queuing, &FieldPath::new("q"));
            assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
        };
        check(64, 8, &[]);
        check(64, 10, &[]);
        check(4, 8, &["q.handSize: Invalid value: 8: should not be greater than queues (4)"]);
        check(
            64,
            11,
            &[
                "q.handSize: Invalid value: 11: required entropy bits of deckSize 64 and handSize 11 should not be greater than 60",
            ],
        );
        check(
            -1,
            0,
            &[
                "q.queues: Invalid value: -1: must be positive",
                "q.handSize: Invalid value: 0: must be positive",
            ],
        );
    }

    #[test]
    fn mandatory_levels_stay() {
        check("exempt", json!({"type": "Exempt", "exempt": {"nominalConcurrencyShares": 5}}), &[]);
        check(
            "catch-all",
            json!({"type": "Limited", "limited": {
            "limitResponse": {"type": "Reject"}, "lendablePercent": 0, "nominalConcurrencyShares": 5}}),
            &[],
        );
        let errors =
            validate(&json!({"metadata": {"name": "catch-all"}, "spec": {"type": "Limited", "limited": {
            "limitResponse": {"type": "Reject"}, "nominalConcurrencyShares": 6}}}));
        let messages: Vec<String> = errors.iter().map(|error| error.to_string()).collect();
        assert_eq!(
            messages,
            ["spec: Invalid value: {\"Type\":\"Limited\",\"Limited\":{\"NominalConcurrencyShares\":6,\
              \"LimitResponse\":{\"Type\":\"Reject\",\"Queuing\":null},\"LendablePercent\":null,\
              \"BorrowingLimitPercent\":null},\"Exempt\":null}: spec of 'catch-all' must equal the fixed value"]
        );
        let errors = validate(
            &json!({"metadata": {"name": "exempt"}, "spec": {"type": "Exempt", "limited": {"lendablePercent": 1}}}),
        );
        let details: Vec<&str> = errors.iter().map(|error| error.detail.as_str()).collect();
        assert_eq!(
            details,
            [
                "must be nil if the type is not Limited",
                "spec of 'exempt' except the 'spec.exempt' field must equal the fixed value",
            ]
        );
    }
}
