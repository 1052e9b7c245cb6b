//! Compiles the expressions that select devices.
//!
//! They read one variable, `device`
//! (<https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/resource-claim-v1/>). The sizes of its parts
//! are bounded by the rules for resource slices, and bound the cost of an expression.

use pintle_cel::declarations::Library;
use pintle_cel::estimate::{Estimate, SizeEstimator, estimate_cost};
use pintle_cel::types::{ObjectTypes, Type};
use pintle_cel::{Environment, EnvironmentType, Stage};
use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::{ErrorList, FieldError, FieldPath};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::{Arc, LazyLock};

/// The maximum length of an expression, in bytes.
const MAX_LENGTH: usize = 10 * 1024;
/// The maximum cost of an expression.
const MAX_COST: u64 = 1_000_000;
/// The maximum length of all expressions of an object together, with the weight of their patterns and the length of
/// the errors, in bytes.
const MAX_EFFORT: u64 = 1_000_000;
/// The cost of one position of a pattern, in bytes of expressions.
const PLACE: u64 = 8;

const DEVICE: &str = "device";
const DEVICE_TYPE: &str = "kubernetes.DRADevice";

/// The maximum lengths of a driver's name, of the domain and the identifier of a name, and of an attribute's text.
const MAX_DRIVER: u64 = 63;
const MAX_DOMAIN: u64 = 63;
const MAX_IDENTIFIER: u64 = 32;
const MAX_ATTRIBUTE: u64 = 64;
/// The maximum number of attributes, or of capacities, of a device.
const MAX_ENTRIES: u64 = 32;

/// The remaining budget for compiling the selectors of one object.
pub(super) struct SelectorEffort(Cell<u64>);

impl SelectorEffort {
    /// The whole budget.
    pub(super) fn new() -> SelectorEffort {
        SelectorEffort(Cell::new(MAX_EFFORT))
    }

    fn spend(&self, amount: usize) {
        self.0.set(self.0.get().saturating_sub(amount as u64));
    }

    fn is_spent(&self) -> bool {
        self.0.get() == 0
    }
}

/// Validates an expression: it compiles to a boolean, and its cost is bounded.
pub(super) fn validate(
    expression: &str,
    environment_type: EnvironmentType,
    path: &FieldPath,
    effort: &SelectorEffort,
) -> ErrorList {
    if expression.len() > MAX_LENGTH {
        return vec![FieldError::too_long(path, MAX_LENGTH)];
    }
    effort.spend(expression.len());
    if effort.is_spent() {
        return vec![FieldError::forbidden(path, "the selectors of the object take too long to compile")];
    }
    let program = match environment(environment_type).compile(expression) {
        Ok(program) => program,
        Err(errors) => {
            let text = errors.to_string();
            effort.spend(text.len());
            return vec![match errors.stage() {
                Stage::Compilation => {
                    FieldError::invalid(path, expression, format!("compilation failed: {text}"))
                }
                Stage::Instantiation => {
                    FieldError::internal(path, format!("program instantiation failed: {text}"))
                }
            }];
        }
    };
    effort.spend(usize::try_from(program.pattern_weight().saturating_mul(PLACE)).unwrap_or(usize::MAX));
    match program.result_type() {
        // The value of an attribute has a type at run time only.
        Type::Bool | Type::Any => {}
        Type::Dyn if has_lists() => {}
        other => {
            let found = other.declared_name();
            let detail = format!("must evaluate to bool or the unknown type, not {found}");
            return vec![FieldError::invalid(path, expression, detail)];
        }
    }
    if estimate_cost(program.ast(), &DeviceSizes).max > MAX_COST {
        return vec![FieldError::forbidden(path, "too complex, exceeds cost limit")];
    }
    ErrorList::new()
}

/// Whether attributes may be lists.
fn has_lists() -> bool {
    enabled(Gate::DRAListTypeAttributes)
}

fn environment(environment_type: EnvironmentType) -> &'static Environment {
    // The gates of a process do not change.
    static NEW: LazyLock<Environment> = LazyLock::new(|| environment_of(EnvironmentType::NewExpressions));
    static STORED: LazyLock<Environment> =
        LazyLock::new(|| environment_of(EnvironmentType::StoredExpressions));
    match environment_type {
        EnvironmentType::NewExpressions => &NEW,
        EnvironmentType::StoredExpressions => &STORED,
    }
}

/// The environment by the gates. Stored expressions may read and call what a gate has opened before.
fn environment_of(environment_type: EnvironmentType) -> Environment {
    let is_stored = environment_type == EnvironmentType::StoredExpressions;
    let attribute = if has_lists() { Type::Dyn } else { Type::Any };
    let is_shared = is_stored || enabled(Gate::DRAConsumableCapacity);
    let map = |value| Type::map(Type::String, Type::map(Type::String, value));
    let mut types = ObjectTypes::default();
    let shared = is_shared.then(|| ("allowMultipleAllocations".into(), Type::Bool));
    let fields = [
        ("driver".into(), Type::String),
        ("attributes".into(), map(attribute)),
        ("capacity".into(), map(Type::object("kubernetes.Quantity"))),
    ];
    types.insert(DEVICE_TYPE, fields.into_iter().chain(shared));
    let environment = Environment::new()
        .of_type(environment_type)
        .with_variable(DEVICE, Type::object(DEVICE_TYPE))
        .with_types(Arc::new(types))
        .with_library(Library::Bindings);
    match is_stored || has_lists() {
        true => environment.with_library(Library::DeviceAttributes),
        false => environment,
    }
}

/// The maximum sizes of a device's parts.
struct DeviceSizes;

impl SizeEstimator for DeviceSizes {
    fn size(&self, path: &[Rc<str>], _value_type: &Type) -> Option<Estimate> {
        let (root, path) = path.split_first()?;
        if &**root != DEVICE {
            return None;
        }
        let path: Vec<&str> = path.iter().map(|step| &**step).collect();
        let max = match path.as_slice() {
            ["driver"] => MAX_DRIVER,
            ["allowMultipleAllocations"] => 1,
            ["attributes" | "capacity"] | ["attributes" | "capacity", "@values"] => MAX_ENTRIES,
            ["attributes" | "capacity", "@keys"] => MAX_DOMAIN,
            ["attributes" | "capacity", "@values", "@keys"] => MAX_IDENTIFIER,
            // Every attribute has this size, whether the expression names it or not.
            ["attributes", "@values", _] => MAX_ATTRIBUTE,
            _ => return None,
        };
        Some(Estimate { min: 0, max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_feature_gates::{FeatureGates, testing::override_gates};

    fn check(expression: &str, expected: &[&str]) {
        let errors = validate(
            expression,
            EnvironmentType::NewExpressions,
            &FieldPath::new("e"),
            &SelectorEffort::new(),
        );
        assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), expected, "{expression}");
    }

    #[test]
    fn selectors_are_expressions_about_a_device() {
        for expression in [
            "device.driver == 'gpu.example.com'",
            "device.attributes['gpu.example.com'].model == 'x'",
            "device.attributes['a'].b",
            "device.attributes['a'].b && true",
            "device.capacity['a'].memory.compareTo(quantity('1Gi')) >= 0",
            "device.allowMultipleAllocations == true",
            "cel.bind(m, device.attributes['a'], m.model == 'x' && m.other == 'y')",
            "device.attributes['a'].v.isGreaterThan(semver('1.0.0'))",
            "device.attributes.all(a, device.attributes.all(b, device.attributes.all(d, a == b && b == d)))",
        ] {
            check(expression, &[]);
        }
    }

    #[test]
    fn stored_expressions_keep_what_a_gate_has_opened() {
        let closed = FeatureGates::default()
            .with(Gate::DRAConsumableCapacity, false)
            .with(Gate::DRAListTypeAttributes, false);
        let _gates = override_gates(&closed);
        for expression in ["device.allowMultipleAllocations", "device.driver.includes('x')"] {
            let compiles = |environment_type| environment_of(environment_type).compile(expression).is_ok();
            assert!(!compiles(EnvironmentType::NewExpressions), "{expression}");
            assert!(compiles(EnvironmentType::StoredExpressions), "{expression}");
        }
    }

    #[test]
    fn other_expressions_are_refused() {
        check(
            "device.driver",
            &[r#"e: Invalid value: "device.driver": must evaluate to bool or the unknown type, not string"#],
        );
        check(
            "[duration('1s')]",
            &[
                r#"e: Invalid value: "[duration('1s')]": must evaluate to bool or the unknown type, not list(google.protobuf.Duration)"#,
            ],
        );
        check(
            "null",
            &[r#"e: Invalid value: "null": must evaluate to bool or the unknown type, not null_type"#],
        );
        check(
            "object",
            &[
                "e: Invalid value: \"object\": compilation failed: ERROR: <input>:1:1: undeclared reference to 'object' \
               (in container '')\n | object\n | ^",
            ],
        );
        check(&"x".repeat(MAX_LENGTH + 1), &["e: Too long: may not be more than 10240 bytes"]);
    }

    #[test]
    fn costs_are_bounded() {
        let expression = "device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, \
                          device.attributes.all(d, a + b + c + d == ''))))";
        check(expression, &["e: Forbidden: too complex, exceeds cost limit"]);
        check(
            "[1, 2].map(x, string(x)).join('').matches('a*') || lists.range(10000000).all(i, i > 0)",
            &["e: Forbidden: too complex, exceeds cost limit"],
        );
    }

    #[test]
    fn the_selectors_of_an_object_share_a_budget() {
        let effort = SelectorEffort::new();
        let expression = format!("device.driver == '{}'", "x".repeat(10_000));
        let path = FieldPath::new("e");
        let refused = (0..200)
            .position(|_| !validate(&expression, EnvironmentType::NewExpressions, &path, &effort).is_empty());
        assert!(refused.is_some_and(|refused| refused > 50), "{refused:?}");
        let errors = validate("true", EnvironmentType::NewExpressions, &path, &effort);
        assert_eq!(
            errors[0].to_string(),
            "e: Forbidden: the selectors of the object take too long to compile"
        );
    }
}
