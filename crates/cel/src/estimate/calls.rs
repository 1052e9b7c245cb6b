//! Estimates the cost of calls, by overload: cel-go's extensions, then Kubernetes' libraries, then the language itself.

use super::coster::{Coster, EntrySize, Node, append};
use super::range::Estimate;
use super::unit_costs::{LIST, MESSAGE, REGEX_LENGTH, STRING_TRAVERSAL};
use crate::ast::{Expr, ExprKind, Literal};
use crate::functions::MAX_INCLUDED;
use crate::types::Type;

/// The cost of a simple call.
const NOMINAL: Estimate = Estimate::fixed(1);
/// The cost of an authorization check; the budget of an expression allows two.
const AUTHORIZATION: Estimate = Estimate::fixed(350_000);
/// The maximum length of the regular expression of a named format.
const NAMED_FORMAT_REGEX: f64 = 128.0;
/// The maximum length of the name of a named format.
const NAMED_FORMAT: u64 = 64;
/// The maximum number of requirements for each character of a selector.
const REQUIREMENTS: f64 = 0.5;

/// A call with a resolved overload.
pub(super) struct Called<'c, 'a> {
    pub(super) expr: &'a Expr,
    pub(super) function: &'c str,
    pub(super) overload: &'c str,
    pub(super) target: Option<&'c Node<'a>>,
    pub(super) args: &'c [Node<'a>],
    /// The costs of evaluating the arguments.
    pub(super) costs: &'c [Estimate],
}

/// The cost of a call beside its arguments, and the size of its result if known.
type CallCost = (Estimate, Option<Estimate>);

impl<'a> Coster<'a> {
    /// The cost of a call with its arguments, but without its target.
    pub(super) fn overload_cost(&mut self, called: &Called<'_, 'a>) -> CallCost {
        let arguments = called.costs.iter().copied().fold(Estimate::default(), Estimate::plus);
        let library = self.extension_cost(called).or_else(|| self.kubernetes_cost(called));
        if let Some((cost, size)) = library {
            return (cost.plus(arguments), size);
        }
        match (called.overload, called.costs) {
            // The second operand may never be evaluated.
            ("logical_or" | "logical_and", [left, right]) => {
                (Estimate { min: left.min, max: left.plus(*right).max }, None)
            }
            ("conditional", [condition, yes, no]) => {
                (condition.plus(yes.union(*no)), self.conditional_size(called))
            }
            _ => {
                let (cost, size) = self.standard_cost(called).unwrap_or((NOMINAL, None));
                (cost.plus(arguments), size)
            }
        }
    }

    /// The costs in cel-go's list and set libraries.
    fn extension_cost(&self, called: &Called<'_, 'a>) -> Option<CallCost> {
        let allocating =
            |factor: f64, size: Estimate| Some((size.scaled(factor).plus(NOMINAL).plus(LIST), Some(size)));
        match (called.overload, called.target, called.args) {
            ("list_slice", Some(target), [start, end]) => {
                let size = self.size_of(target);
                let start = integer(start).unwrap_or(0);
                let end = integer(end).unwrap_or(size.max);
                allocating(1.0, Estimate::fixed(end.wrapping_sub(start)))
            }
            ("lists_range", None, [count]) => {
                allocating(1.0, Estimate::fixed(integer(count).unwrap_or(u64::MAX)))
            }
            ("list_reverse", Some(target), []) => allocating(1.0, self.size_of(target)),
            ("list_flatten" | "list_flatten_int", Some(target), depth) => {
                let depth = match depth {
                    [] => 1,
                    [depth, ..] => integer(depth).unwrap_or(u64::MAX),
                };
                allocating(depth as f64, self.size_of(target))
            }
            ("list_distinct", Some(target), []) => {
                let size = self.size_of(target);
                allocating(2.0, size.times(size))
            }
            ("list_sets_contains_list" | "list_sets_intersects_list", _, [left, right]) => {
                let pairs = self.size_of(left).times(self.size_of(right));
                Some((pairs.scaled(1.0).plus(NOMINAL), None))
            }
            ("list_sets_equivalent_list", _, [left, right]) => {
                let pairs = self.size_of(left).times(self.size_of(right));
                Some((pairs.scaled(2.0).plus(NOMINAL), None))
            }
            (overload, Some(target), args) => {
                let sorted = match args {
                    [] if overload.ends_with("_sort") => target,
                    [keys] if overload.ends_with("_sortByAssociatedKeys") => keys,
                    _ => return None,
                };
                let is_text = overload.starts_with("list_string_") || overload.starts_with("list_bytes_");
                let size = self.size_of(sorted);
                allocating(if is_text { 2.0 + STRING_TRAVERSAL } else { 2.0 }, size.times(size))
            }
            _ => None,
        }
    }

    /// The costs in Kubernetes' libraries, and the costs that Kubernetes overrides.
    fn kubernetes_cost(&self, called: &Called<'_, 'a>) -> Option<CallCost> {
        let traversal = |size: Estimate| size.scaled(STRING_TRAVERSAL);
        let only = |cost: Estimate| Some((cost, None));
        let first = called.args.first();
        match called.function {
            "check" => only(AUTHORIZATION),
            "serviceAccount"
            | "path"
            | "group"
            | "resource"
            | "subresource"
            | "namespace"
            | "name"
            | "allowed"
            | "reason"
            | "error"
            | "errored"
            | "masked"
            | "prefixLength"
            | "family"
            | "isUnspecified"
            | "isLoopback"
            | "isLinkLocalMulticast"
            | "isLinkLocalUnicast"
            | "isGlobalUnicast"
            | "format.named"
            | "sign"
            | "asInteger"
            | "isInteger"
            | "asApproximateFloat"
            | "isGreaterThan"
            | "isLessThan"
            | "compareTo"
            | "add"
            | "sub"
            | "major"
            | "minor"
            | "patch"
            | "getScheme"
            | "getHostname"
            | "getHost"
            | "getPort"
            | "getEscapedPath"
            | "getQuery" => only(NOMINAL),
            "fieldSelector" | "labelSelector" => match called.args {
                [selector] => only(selector_cost(self.size_of(selector))),
                _ => None,
            },
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => {
                let target = called.target?;
                let size = self.size_of(target);
                let Some(element) = element_of(target) else { return only(traversal(size)) };
                let mut each = NOMINAL;
                if matches!(element.value_type, Type::String | Type::Bytes) {
                    each = each.plus(traversal(self.size_of(&element)));
                }
                only(size.times(each))
            }
            "url" | "jsonpatch.escapeKey" => match called.args {
                [text] => {
                    let size = self.size_of(text);
                    Some((traversal(size), Some(size)))
                }
                _ => None,
            },
            "lowerAscii" | "upperAscii" | "substring" | "trim" => {
                let size = self.size_of(called.target?);
                Some((traversal(size), Some(size)))
            }
            "replace" => match called.args {
                [old, new, ..] => {
                    let size = self.size_of(called.target?);
                    let result = replaced_size(size, self.size_of(old), self.size_of(new));
                    Some((size.scaled(2.0 * STRING_TRAVERSAL), Some(result)))
                }
                _ => None,
            },
            "split" => {
                let size = self.size_of(called.target?);
                let max = match called.args.get(1).and_then(|limit| limit.expr).map(|expr| &expr.kind) {
                    // A negative limit means no limit.
                    Some(ExprKind::Literal(Literal::Int(limit))) => *limit as u64,
                    _ => size.max,
                };
                Some((size.scaled(2.0 * STRING_TRAVERSAL), Some(Estimate { min: 0, max })))
            }
            "join" => {
                let size = self.joined_size(called.target?, first);
                Some((traversal(size), Some(size)))
            }
            "find" | "findAll" => {
                let (target, regex) = (called.target?, first?);
                let size = self.size_of(target);
                let text = traversal(size.plus(Estimate::fixed(1)));
                let cost = text.times(self.size_of(regex).scaled(REGEX_LENGTH));
                Some((cost, Some(Estimate { min: 0, max: size.max })))
            }
            "ip" if called.overload == "cidr_ip" => only(NOMINAL),
            "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver" => {
                only(traversal(self.size_of(first?)))
            }
            "ip.isCanonical" => only(self.size_of(first?).scaled(2.0 * STRING_TRAVERSAL)),
            "containsIP" => {
                let mut cost = traversal(ADDRESS.plus(ADDRESS));
                if called.overload == "cidr_contains_ip_string" {
                    cost = cost.plus(traversal(self.size_of(first?)));
                }
                first.and_then(|_| only(cost))
            }
            "containsCIDR" => {
                let mut cost = traversal(ADDRESS.plus(ADDRESS)).plus(traversal(ADDRESS)).plus(NOMINAL);
                if called.overload == "cidr_contains_cidr_string" {
                    cost = cost.plus(traversal(self.size_of(first?)));
                }
                first.and_then(|_| only(cost))
            }
            "validate" => only(traversal(self.size_of(first?)).scaled(NAMED_FORMAT_REGEX * REGEX_LENGTH)),
            // As many comparisons as a device has values.
            "includes" => called.target.and_then(|_| only(Estimate { min: 0, max: MAX_INCLUDED as u64 })),
            "_==_" => match called.args {
                [left, right] if left.value_type == right.value_type => equality_cost(right),
                _ => None,
            },
            _ => None,
        }
    }

    /// The costs of the language itself; `None` for simple calls.
    fn standard_cost(&mut self, called: &Called<'_, 'a>) -> Option<CallCost> {
        let traversal = |size: Estimate| size.scaled(STRING_TRAVERSAL);
        // Unlike above, a size that is not computed is not looked up again: the lookup was part of its computation.
        let size = |node: &Node<'_>| node.computed.unwrap_or(Estimate::UNKNOWN);
        Some(match (called.overload, called.target, called.args) {
            ("string_format", Some(target), _) => (traversal(size(target)), None),
            ("string_to_bytes", _, [text]) => {
                let size = size(text);
                // A character has at most four bytes.
                (traversal(size), Some(Estimate { min: size.min, max: size.max.wrapping_mul(4) }))
            }
            ("bytes_to_string", _, [bytes]) => {
                let size = size(bytes);
                (traversal(size), Some(Estimate { min: size.min / 4, max: size.max }))
            }
            ("strings_quote", _, [text]) => {
                let size = size(text);
                let max = size.max.wrapping_mul(2).wrapping_add(2);
                (traversal(size), Some(Estimate { min: size.min.wrapping_add(2), max }))
            }
            ("starts_with_string" | "ends_with_string", _, [part]) => (traversal(size(part)), None),
            ("in_list", _, [_, list]) => (size(list).scaled(1.0), None),
            ("matches_string", Some(target), [regex]) => {
                let text = traversal(size(target).plus(Estimate::fixed(1)));
                (text.times(size(regex).scaled(REGEX_LENGTH)), None)
            }
            ("contains_string", Some(target), [part]) => {
                (traversal(size(target)).times(traversal(size(part))), None)
            }
            ("add_string" | "add_bytes" | "add_list", _, [left, right]) => {
                let result = size(left).plus(size(right));
                if let (Some(left), Some(right)) = (self.entry_of(left), self.entry_of(right)) {
                    self.entries.insert(called.expr.id, left.union(right));
                }
                let cost = if called.overload == "add_list" { NOMINAL } else { traversal(result) };
                (cost, Some(result))
            }
            (
                "less_string"
                | "greater_string"
                | "less_equals_string"
                | "greater_equals_string"
                | "less_bytes"
                | "greater_bytes"
                | "less_equals_bytes"
                | "greater_equals_bytes"
                | "equals"
                | "not_equals",
                _,
                [left, right],
            ) => {
                let max = size(left).max.min(size(right).max);
                (traversal(Estimate { min: max.min(1), max }), None)
            }
            _ => return None,
        })
    }

    fn conditional_size(&mut self, called: &Called<'_, 'a>) -> Option<Estimate> {
        let [_, yes, no] = called.args else { return None };
        if let (Some(yes), Some(no)) = (self.entry_of(yes), self.entry_of(no)) {
            self.entries.insert(called.expr.id, yes.union(no));
        }
        let size = |node: &Node<'_>| node.computed.unwrap_or(Estimate::UNKNOWN);
        Some(size(yes).union(size(no)))
    }

    fn entry_of(&self, node: &Node<'a>) -> Option<EntrySize> {
        self.entry_size(node.expr?)
    }

    fn joined_size(&self, list: &Node<'a>, separator: Option<&Node<'a>>) -> Estimate {
        let count = self.size_of(list);
        let mut size =
            element_of(list).map(|element| count.times(self.size_of(&element))).unwrap_or_default();
        if let Some(separator) = separator {
            let separators = Estimate { min: count.min.saturating_sub(1), max: count.max.saturating_sub(1) };
            size = size.plus(self.size_of(separator).times(separators));
        }
        size
    }

    fn size_of(&self, node: &Node<'a>) -> Estimate {
        let known = || self.sizes.size(node.path.as_deref().unwrap_or_default(), &node.value_type);
        node.computed.or_else(known).unwrap_or(Estimate::UNKNOWN)
    }
}

/// The size of an IP address, in bytes.
const ADDRESS: Estimate = Estimate { min: 4, max: 16 };

fn integer(node: &Node<'_>) -> Option<u64> {
    match node.expr?.kind {
        // A negative value counts as zero.
        ExprKind::Literal(Literal::Int(value)) => Some(u64::try_from(value).unwrap_or(0)),
        _ => None,
    }
}

/// The element of a list (or, by the first parameter of its type, of another container).
fn element_of<'a>(list: &Node<'a>) -> Option<Node<'a>> {
    let value_type = list.value_type.parameters().first().map(|first| (*first).clone())?;
    let path = list.path.as_ref().and_then(|_| append(&list.path, "@items"));
    Some(Node { path, value_type, expr: None, computed: None })
}

fn selector_cost(length: Estimate) -> Estimate {
    let requirements = length.scaled(REQUIREMENTS);
    let each = (LIST.max + MESSAGE.max) as f64;
    LIST.plus(length.scaled(STRING_TRAVERSAL)).plus(requirements.scaled(each))
}

fn replaced_size(size: Estimate, old: Estimate, new: Estimate) -> Estimate {
    let divided = |size: u64, by: u64| (size as f64 / by as f64).ceil() as u64;
    let (mut count, mut kept) = (Estimate::default(), Estimate::default());
    // The longest result: the replaced part is as short, and the replacement as long as possible.
    if old.min == 0 {
        count.max = size.max.saturating_add(1);
        kept.max = size.max;
    } else if new.max <= old.min {
        kept.max = size.max;
    } else {
        count.max = divided(size.max, old.min);
    }
    // The shortest result: the reverse.
    if old.max == 0 {
        count.min = size.min.saturating_add(1);
        kept.min = size.min;
    } else if old.max <= new.min {
        kept.min = size.min;
    } else {
        count.min = divided(size.min, old.max);
    }
    count.times(new).plus(kept)
}

/// The cost of comparing two values of Kubernetes' own types.
fn equality_cost(right: &Node<'_>) -> Option<CallCost> {
    let at_most = |max: u64| Estimate { min: 1, max }.scaled(STRING_TRAVERSAL);
    let cost = match &right.value_type {
        Type::Opaque(name, _) if matches!(&**name, "net.IP" | "net.CIDR") => NOMINAL,
        Type::Object(name) => match &**name {
            "kubernetes.Quantity" | "kubernetes.Semver" => NOMINAL,
            "kubernetes.NamedFormat" => at_most(NAMED_FORMAT),
            "kubernetes.URL" => at_most(right.computed.map_or(1, |size| size.max)),
            name if name.starts_with("kubernetes.authorization.") => NOMINAL,
            _ => return None,
        },
        _ => return None,
    };
    Some((cost, None))
}
