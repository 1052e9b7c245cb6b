//! Computes the cost of calls, by function and overload, from the sizes of arguments and result.
//!
//! Of three tables the first that contains the call applies: those of the list and set extensions, that of Kubernetes'
//! libraries, that of the language. Other calls cost 1.

use crate::EvaluationError;
use crate::value::{Opaque, Value};

/// The cost of an access to a variable, a field or an index.
pub(super) const SELECT: u64 = 1;
/// The cost of creating a list.
pub(super) const CREATE_LIST: u64 = 10;
/// The cost of creating a map.
pub(super) const CREATE_MAP: u64 = 30;

/// The cost of creating an object.
pub(super) const CREATE_OBJECT: u64 = 40;

/// The rule for the cost of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallCost {
    /// A constant.
    Fixed(u64),
    /// Reading the first argument as a text, this number of times.
    Read(u64),
    /// Reading the shorter of two arguments.
    ReadShorter,
    /// Reading both arguments.
    ReadBoth,
    /// Searching the second argument in the first.
    ReadProduct,
    /// Matching a pattern, the second argument, against the first.
    Match,
    /// Matching the pattern of a named format, the first argument, against the second.
    Validate,
    /// Writing the result as a text, twice.
    WriteResult,
    /// The size of the second argument.
    SecondSize,
    /// Visiting everything in the first argument.
    Traverse,
    /// Comparing an address range with an address, or with another range (`cidr`); the second argument may be a text,
    /// which is parsed.
    Range { cidr: bool, text: bool },
    /// Creating a list with the length of the result.
    MakeResult,
    /// Creating a list with the length of the first argument, for each level.
    Flatten,
    /// Comparing all pairs of items of an argument, which must be a list.
    CompareAll { arg: usize },
    /// Comparing every item of one set with every one of the other, that many times.
    CompareSets(u64),
}

impl CallCost {
    /// The rule for a function. `overload` is empty when several may apply at run time.
    pub(super) fn new(function: &str, overload: &str) -> CallCost {
        by_extension(overload)
            .or_else(|| by_function(function, overload))
            .unwrap_or_else(|| by_overload(overload))
    }

    /// Whether the cost depends on the result, so that it is known only after the call.
    pub(super) fn needs_result(self) -> bool {
        matches!(self, CallCost::WriteResult | CallCost::MakeResult)
    }

    /// The cost of a call. With `failed`, the arguments that are null are those that have no value.
    ///
    /// # Errors
    /// [`EvaluationError::Internal`] where the reference casts an argument that is not what the function takes.
    pub(super) fn of(
        self,
        args: &[Value<'_>],
        failed: bool,
        result: Option<&Value<'_>>,
        limit: u64,
    ) -> Result<u64, EvaluationError> {
        let size = |index: usize| args.get(index).map_or(1, Value::size);
        let name = |index: usize| match args.get(index) {
            Some(Value::Null) if failed => "*types.Err",
            argument => argument.map_or("", Value::implementation_name),
        };
        Ok(match self {
            CallCost::Fixed(cost) => cost,
            CallCost::Read(times) => tenths(size(0).saturating_mul(times)),
            CallCost::ReadShorter => tenths(size(0).min(size(1))),
            CallCost::ReadBoth => tenths(size(0) + size(1)),
            CallCost::ReadProduct => tenths(size(0)).saturating_mul(tenths(size(1))),
            CallCost::Match => tenths(size(0) + 1).saturating_mul(size(1).div_ceil(4)),
            CallCost::Validate => match args.first() {
                Some(Value::Opaque(opaque)) => match &**opaque {
                    Opaque::Format(format) => {
                        tenths(size(1) + 1).saturating_mul(format.pattern_length().div_ceil(4))
                    }
                    _ => 1,
                },
                _ => 1,
            },
            CallCost::WriteResult => tenths(result.map_or(1, Value::size).saturating_mul(2)),
            CallCost::SecondSize => size(1),
            CallCost::Traverse => args.first().map_or(0, |value| {
                let mut steps = limit;
                traverse(value, &mut steps).unwrap_or(u64::MAX)
            }),
            CallCost::Range { cidr, text } => {
                let own = size(0);
                let prefix = if cidr { tenths(own) + 1 } else { 0 };
                tenths(own * 2) + prefix + if text { tenths(size(1)) } else { 0 }
            }
            CallCost::MakeResult => make_list(result.map_or(1, Value::size), 10),
            CallCost::Flatten => match args.get(1) {
                // The reference computes with floats, of which negative ones wrap around.
                Some(Value::Int(depth)) if *depth < 0 => {
                    let units = size(0) as f64 * *depth as f64;
                    (units as i64).cast_unsigned().wrapping_add(make_list(0, 10))
                }
                Some(Value::Int(depth)) => make_list(size(0).saturating_mul(depth.unsigned_abs()), 10),
                Some(_) => {
                    let text = format!("interface conversion: ref.Val is {}, not types.Int", name(1));
                    return Err(EvaluationError::Internal(text));
                }
                None => make_list(size(0), 10),
            },
            CallCost::CompareAll { arg } => {
                let Some(Value::List(list)) = args.get(arg) else {
                    return Err(EvaluationError::Internal(no_list(name(arg))));
                };
                let first = list.get(0);
                // Comparing texts reads them too.
                let factor =
                    if matches!(first, Some(Ok(Value::String(_) | Value::Bytes(_)))) { 21 } else { 20 };
                make_list(size(arg).saturating_mul(size(arg)), factor)
            }
            CallCost::CompareSets(times) => {
                size(0).saturating_mul(size(1)).saturating_mul(times).saturating_add(1)
            }
        })
    }
}

/// Go's text about a cast to a list: it names the first method that the type does not have.
fn no_list(name: &str) -> String {
    let adds = matches!(
        name,
        "types.Int"
            | "types.Uint"
            | "types.Double"
            | "types.String"
            | "types.Bytes"
            | "types.Duration"
            | "types.Timestamp"
    );
    let method = if adds { "Contains" } else { "Add" };
    format!("interface conversion: {name} is not traits.Lister: missing method {method}")
}

/// The cost of reading a text: a tenth of its size, rounded up.
fn tenths(size: u64) -> u64 {
    size.div_ceil(10)
}

/// The cost of a call that creates a list, plus tenths for each item.
fn make_list(size: u64, factor: u64) -> u64 {
    (size.saturating_mul(factor) / 10).saturating_add(1 + CREATE_LIST)
}

/// The cost of visiting everything in a value; `None` when that takes too many steps.
fn traverse(value: &Value<'_>, steps: &mut u64) -> Option<u64> {
    *steps = steps.checked_sub(1)?;
    Some(match value {
        Value::String(text) => text.len() as u64 / 10,
        Value::Bytes(bytes) => bytes.len() as u64 / 10,
        Value::List(list) => {
            let mut cost: u64 = 0;
            for item in list.iter() {
                cost = cost.saturating_add(match item {
                    Ok(item) => traverse(&item, steps)?,
                    Err(error) if error.ends_evaluation() => return None,
                    Err(_) => 1,
                });
            }
            cost
        }
        Value::Map(map) => {
            let mut cost: u64 = 0;
            for key in map.keys() {
                let value = match map.find(&key) {
                    Ok(Some(value)) => traverse(&value, steps)?,
                    _ => 1,
                };
                cost = cost.saturating_add(traverse(&key, steps)?).saturating_add(value);
            }
            cost
        }
        _ => 1,
    })
}

fn by_extension(overload: &str) -> Option<CallCost> {
    Some(match overload {
        "list_slice" | "lists_range" | "list_reverse" => CallCost::MakeResult,
        "list_flatten" | "list_flatten_int" => CallCost::Flatten,
        "list_distinct" => CallCost::CompareAll { arg: 0 },
        "list_sets_contains_list" | "list_sets_intersects_list" => CallCost::CompareSets(1),
        "list_sets_equivalent_list" => CallCost::CompareSets(2),
        overload if overload.starts_with("list_") && overload.ends_with("_sort") => {
            CallCost::CompareAll { arg: 0 }
        }
        overload if overload.starts_with("list_") && overload.ends_with("_sortByAssociatedKeys") => {
            CallCost::CompareAll { arg: 1 }
        }
        _ => return None,
    })
}

fn by_function(function: &str, overload: &str) -> Option<CallCost> {
    Some(match function {
        "check" => CallCost::Fixed(350_000),
        "serviceAccount" | "path" | "group" | "resource" | "subresource" | "namespace" | "name"
        | "allowed" | "reason" | "error" | "errored" => CallCost::Fixed(1),
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => CallCost::Traverse,
        "url" | "lowerAscii" | "upperAscii" | "substring" | "trim" | "jsonpatch.escapeKey" => {
            CallCost::Read(1)
        }
        "replace" | "split" => CallCost::Read(2),
        "join" => CallCost::WriteResult,
        "find" | "findAll" => CallCost::Match,
        "ip" if overload == "cidr_ip" => CallCost::Fixed(1),
        "ip" | "cidr" | "isIP" | "isCIDR" => CallCost::Read(1),
        "ip.isCanonical" => CallCost::Read(2),
        "masked"
        | "prefixLength"
        | "family"
        | "isUnspecified"
        | "isLoopback"
        | "isLinkLocalMulticast"
        | "isLinkLocalUnicast"
        | "isGlobalUnicast" => CallCost::Fixed(1),
        "containsIP" => CallCost::Range { cidr: false, text: overload == "cidr_contains_ip_string" },
        "containsCIDR" => CallCost::Range { cidr: true, text: overload == "cidr_contains_cidr_string" },
        "quantity" | "isQuantity" | "semver" | "isSemver" => CallCost::Read(1),
        "validate" => CallCost::Validate,
        "format.named" => CallCost::Fixed(1),
        "sign" | "asInteger" | "isInteger" | "asApproximateFloat" | "isGreaterThan" | "isLessThan"
        | "compareTo" | "add" | "sub" | "major" | "minor" | "patch" => CallCost::Fixed(1),
        "getScheme" | "getHostname" | "getHost" | "getPort" | "getEscapedPath" | "getQuery" => {
            CallCost::Fixed(1)
        }
        _ => return None,
    })
}

fn by_overload(overload: &str) -> CallCost {
    match overload {
        "starts_with_string" | "ends_with_string" | "string_to_bytes" | "bytes_to_string"
        | "strings_quote" | "string_format" => CallCost::Read(1),
        "in_list" => CallCost::SecondSize,
        "less_string"
        | "greater_string"
        | "less_equals_string"
        | "greater_equals_string"
        | "less_bytes"
        | "greater_bytes"
        | "less_equals_bytes"
        | "greater_equals_bytes"
        | "equals"
        | "not_equals" => CallCost::ReadShorter,
        "add_string" | "add_bytes" => CallCost::ReadBoth,
        "matches_string" => CallCost::Match,
        "contains_string" => CallCost::ReadProduct,
        _ => CallCost::Fixed(1),
    }
}

/// The cost of `==`: values of Kubernetes' libraries have a constant cost.
pub(super) fn equality(left: &Value<'_>, right: &Value<'_>) -> u64 {
    match left {
        Value::Opaque(_) => 1,
        left => inequality(left, right),
    }
}

/// The cost of `!=`.
pub(super) fn inequality(left: &Value<'_>, right: &Value<'_>) -> u64 {
    tenths(left.size().min(right.size()))
}
