//! Checks the arguments of `'...'.format([...])` against the clauses of the text, where both are literals.
//!
//! Clauses and texts are those of <https://github.com/google/cel-go/tree/master/ext#format>.

use crate::ast::{CheckedAst, Expr, ExprId, ExprKind};
use crate::types::Type;

/// Returns the first error of a call's arguments, with its node.
pub(super) fn check(
    ast: &CheckedAst,
    call: ExprId,
    text: &str,
    arguments: &[Expr],
) -> Option<(ExprId, String)> {
    let mut used = 0;
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match (byte, after.first()) {
            (b'%', Some(b'%')) => rest = after.get(1..).unwrap_or_default(),
            (b'%', None) => return Some((call, "unexpected end of string".to_owned())),
            (b'%', Some(_)) => {
                let Some(argument) = arguments.get(used) else {
                    return Some((call, format!("index {used} out of range")));
                };
                used += 1;
                match clause(after) {
                    Ok((clause, after)) => {
                        rest = after;
                        if let Some((id, message)) = check_argument(ast, clause, argument) {
                            return Some((id, format!("error during formatting: {message}")));
                        }
                    }
                    Err(message) => {
                        return Some((call, format!("could not parse formatting clause: {message}")));
                    }
                }
            }
            _ => {}
        }
    }
    let given = arguments.len();
    (given > used).then(|| {
        (call, format!("too many arguments supplied to string.format (expected {used}, got {given})"))
    })
}

/// The letter of a clause after its percent sign, and the rest of the text.
fn clause(text: &[u8]) -> Result<(u8, &[u8]), String> {
    let mut rest = text;
    if let Some((b'.', precision)) = text.split_first() {
        let digits = precision.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, after) = precision.split_at_checked(digits).unwrap_or_default();
        let number = String::from_utf8_lossy(number);
        let problem = match number.parse::<i64>() {
            _ if after.is_empty() => Some("could not find end of precision specifier".to_owned()),
            Ok(_) => None,
            Err(_) => {
                let reason = if number.is_empty() { "invalid syntax" } else { "value out of range" };
                let problem = format!("strconv.Atoi: parsing \"{number}\": {reason}");
                Some(format!("error while converting precision to integer: {problem}"))
            }
        };
        if let Some(problem) = problem {
            return Err(format!("error while parsing precision: {problem}"));
        }
        rest = after;
    }
    match rest.split_first() {
        Some((letter, after)) if b"sdfebxXo".contains(letter) => Ok((*letter, after)),
        letter => {
            let letter = char::from(letter.map_or(0, |(letter, _)| *letter));
            Err(format!("unrecognized formatting clause \"{letter}\""))
        }
    }
}

fn check_argument(ast: &CheckedAst, clause: u8, argument: &Expr) -> Option<(ExprId, String)> {
    use Type::{Bool, Bytes, Double, Int, String, Uint};
    let of_argument = ast.type_of(argument.id);
    let (fits, rule) = match clause {
        b's' => {
            let id = not_a_string(ast, argument)?;
            let rule = "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps";
            return Some((id, format!("{rule}, was given {}", ast.type_of(id).name())));
        }
        b'd' => (matches!(of_argument, Int | Uint), "decimal clause can only be used on integers"),
        b'f' => (matches!(of_argument, Double | String), "fixed-point clause can only be used on doubles"),
        b'e' => (matches!(of_argument, Double | String), "scientific clause can only be used on doubles"),
        b'b' => {
            (matches!(of_argument, Int | Uint | Bool), "only integers and bools can be formatted as binary")
        }
        b'o' => (matches!(of_argument, Int | Uint), "octal clause can only be used on integers"),
        _ => (
            matches!(of_argument, Int | Uint | String | Bytes),
            "only integers, byte buffers, and strings can be formatted as hex",
        ),
    };
    let fits = fits || *of_argument == Type::Dyn;
    (!fits).then(|| (argument.id, format!("{rule}, was given {}", of_argument.name())))
}

/// The part of an argument that has no string form.
fn not_a_string(ast: &CheckedAst, argument: &Expr) -> Option<ExprId> {
    if matches!(
        ast.type_of(argument.id),
        Type::Object(_) | Type::Opaque(..) | Type::Parameter(_) | Type::Error
    ) {
        return Some(argument.id);
    }
    match &argument.kind {
        ExprKind::List(list) => list.elements.iter().find_map(|element| not_a_string(ast, element)),
        ExprKind::Map(entries) => entries
            .iter()
            .find_map(|entry| not_a_string(ast, &entry.key).or_else(|| not_a_string(ast, &entry.value))),
        _ => None,
    }
}
