//! Checks literals beyond their types, as Kubernetes configures
//! (<https://github.com/google/cel-go/blob/master/cel/validator.go>).

use super::format;
use crate::ast::{CheckedAst, Expr, ExprId, ExprKind, Literal};
use crate::issue::Issue;
use crate::pattern;
use crate::source::Source;
use crate::types::Type;
use crate::value::Timestamp;
use pintle_go_forms::parse_duration;

/// Checks all literals. Errors are grouped by kind of check, which orders errors at the same position.
pub(super) fn validate(ast: &CheckedAst, positions: &[u32], source: &Source<'_>) -> Result<(), Vec<Issue>> {
    let mut found = Findings::default();
    walk(ast, ast.expr(), false, &mut found);
    let Findings { durations, timestamps, patterns, lists, maps, formats, .. } = found;
    let issues: Vec<_> = [durations, timestamps, patterns, lists, maps, formats]
        .into_iter()
        .flatten()
        .map(|(id, message)| {
            let offset = positions.get(id as usize).copied().unwrap_or(0);
            Issue { location: source.location(offset), message }
        })
        .collect();
    if issues.is_empty() { Ok(()) } else { Err(issues) }
}

type Finding = (ExprId, String);

#[derive(Default)]
struct Findings {
    durations: Vec<Finding>,
    timestamps: Vec<Finding>,
    patterns: Vec<Finding>,
    pattern_weight: u64,
    lists: Vec<Finding>,
    maps: Vec<Finding>,
    formats: Vec<Finding>,
}

/// `exempt` is set within the arguments of `format`, which may have mixed types.
fn walk(ast: &CheckedAst, expr: &Expr, exempt: bool, found: &mut Findings) {
    match &expr.kind {
        ExprKind::Unspecified | ExprKind::Literal(_) | ExprKind::Ident(_) => {}
        ExprKind::Select(select) => walk(ast, &select.operand, exempt, found),
        ExprKind::Call(call) => {
            if let Some(Expr { id, kind: ExprKind::Literal(literal) }) = call.args.first() {
                check_argument(&call.function, *id, literal, found);
            }
            let is_format = &*call.function == "format";
            if let (true, Some(Expr { kind: ExprKind::Literal(Literal::String(text)), .. })) =
                (is_format, call.target.as_deref())
                && let [Expr { kind: ExprKind::List(list), .. }] = call.args.as_slice()
            {
                found.formats.extend(format::check(ast, expr.id, text, &list.elements));
            }
            let exempt = exempt || is_format;
            call.target
                .as_deref()
                .into_iter()
                .chain(&call.args)
                .for_each(|argument| walk(ast, argument, exempt, found));
        }
        ExprKind::List(list) => {
            if !exempt {
                let is_optional = |index: usize| list.is_optional(index);
                let mut elements =
                    list.elements.iter().enumerate().map(|(index, element)| {
                        (element.id, entry_type(ast, element.id, is_optional(index)))
                    });
                if let Some((_, first)) = elements.next() {
                    // One error for each list.
                    let different = elements.find(|(_, of_element)| *of_element != first);
                    found.lists.extend(different.map(|(id, of_element)| mismatch(id, first, of_element)));
                }
            }
            list.elements.iter().for_each(|element| walk(ast, element, exempt, found));
        }
        ExprKind::Map(entries) => {
            if !exempt && let Some((first, others)) = entries.split_first() {
                let of_keys = ast.type_of(first.key.id);
                let of_values = entry_type(ast, first.value.id, first.optional);
                for entry in others {
                    let of_key = ast.type_of(entry.key.id);
                    let of_value = entry_type(ast, entry.value.id, entry.optional);
                    found.maps.extend((of_key != of_keys).then(|| mismatch(entry.key.id, of_keys, of_key)));
                    found.maps.extend(
                        (of_value != of_values).then(|| mismatch(entry.value.id, of_values, of_value)),
                    );
                }
            }
            for entry in entries {
                walk(ast, &entry.key, exempt, found);
                walk(ast, &entry.value, exempt, found);
            }
        }
        ExprKind::Struct(message) => {
            message.fields.iter().for_each(|field| walk(ast, &field.value, exempt, found))
        }
        ExprKind::Comprehension(fold) => {
            for part in [&fold.range, &fold.initial, &fold.condition, &fold.step, &fold.result] {
                walk(ast, part, exempt, found);
            }
        }
    }
}

fn entry_type(ast: &CheckedAst, id: ExprId, optional: bool) -> &Type {
    let of_entry = ast.type_of(id);
    of_entry.optional_value().filter(|_| optional).unwrap_or(of_entry)
}

fn mismatch(id: ExprId, expected: &Type, actual: &Type) -> Finding {
    (id, format!("expected type '{expected}' but found '{actual}'"))
}

fn check_argument(function: &str, id: ExprId, literal: &Literal, found: &mut Findings) {
    let Literal::String(text) = literal else {
        match (literal, function) {
            (Literal::Int(seconds), "timestamp") if Timestamp::from_seconds(*seconds).is_err() => {
                found.timestamps.push((id, "invalid timestamp argument".to_owned()));
            }
            // The conversion is declared, and always fails.
            (Literal::Int(_) | Literal::Null, "duration") => {
                found.durations.push((id, "invalid duration argument".to_owned()))
            }
            (Literal::Null, "timestamp") => {
                found.timestamps.push((id, "invalid timestamp argument".to_owned()))
            }
            _ => {}
        }
        return;
    };
    let (valid, into) = match function {
        "duration" => (parse_duration(text).is_ok(), &mut found.durations),
        "timestamp" => {
            let is_valid = Timestamp::parse(text).is_ok_and(|time| time.in_range().is_ok());
            (is_valid, &mut found.timestamps)
        }
        "matches" => {
            found.pattern_weight = found.pattern_weight.saturating_add(pattern::weight(text));
            let is_valid = found.pattern_weight <= pattern::MAX_WEIGHT && pattern::compile(text).is_ok();
            (is_valid, &mut found.patterns)
        }
        _ => return,
    };
    if !valid {
        into.push((id, format!("invalid {function} argument")));
    }
}
