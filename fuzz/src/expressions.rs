//! Fuzzes the expressions of definitions and policies.

use pintle_cel::estimate::{UnknownSizes, estimate_cost};
use pintle_cel::types::Type;
use pintle_cel::{Activation, Environment, Value};
use std::sync::LazyLock;

/// The cost limit of an evaluation.
const BUDGET: u64 = 10_000;

static ENVIRONMENT: LazyLock<Environment> = LazyLock::new(|| {
    Environment::new().with_variable("self", Type::Dyn).with_variable("list", Type::list(Type::String))
});

/// A valid expression compiles to the same program again, and evaluates within its budget to the same value each time;
/// an invalid one has an error.
pub(crate) fn expression(data: &[u8]) {
    let Ok(source) = std::str::from_utf8(data) else { return };
    let program = match ENVIRONMENT.compile(source) {
        Ok(program) => program,
        Err(errors) => return assert!(!errors.messages().is_empty() && !errors.to_string().is_empty()),
    };
    let again = ENVIRONMENT.compile(source).expect("it compiled before");
    assert_eq!(program.result_type(), again.result_type());
    let object =
        pintle_machinery::json!({"a": 1, "b": ["x", "y"], "c": {"d": null, "e": "2020-01-01T00:00:00Z"}});
    let list = pintle_machinery::json!(["a", "b", "10.0.0.1"]);
    let activation =
        Activation::new().with("self", Value::from_json(&object)).with("list", Value::from_json(&list));
    let evaluate = || {
        let mut budget = BUDGET;
        let value = program.evaluate(&activation, &mut budget);
        (format!("{value:?}"), budget)
    };
    assert_eq!(evaluate(), evaluate());
    let estimate = estimate_cost(program.ast(), &UnknownSizes);
    assert!(estimate.min <= estimate.max);
}
