//! Parses expressions that are not evaluated.

use crate::ast::Expr;
use crate::source::Source;
use crate::stack::{is_deep, with_room};
use crate::syntax::{self, Dialect};

/// Parses an expression of the plain language, without macros and optionals, and gives its tree to `read`. For
/// expressions that the server reads and does not evaluate; their depth is bounded as that of all expressions.
///
/// # Errors
/// The message of the first error.
pub fn read_plain<T: Send>(source: &str, read: impl FnOnce(&Expr) -> T + Send) -> Result<T, String> {
    let parse = || {
        let ast = syntax::parse(&Source::new(source), Dialect::Plain)
            .map_err(|issues| issues.into_iter().next().map(|issue| issue.message).unwrap_or_default())?;
        Ok(read(&ast.expr))
    };
    with_room(is_deep(source), parse).unwrap_or_else(|error| Err(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::read_plain;
    use crate::ast::ExprKind;

    #[test]
    fn the_plain_language_has_neither_macros_nor_optionals() {
        let function = |source| {
            read_plain(source, |expr| match &expr.kind {
                ExprKind::Call(call) => call.function.to_string(),
                kind => panic!("{kind:?}"),
            })
        };
        for (source, expected) in [
            ("has(a)", Ok("has")),
            ("[1].all(x, x)", Ok("all")),
            ("cel.bind(x, 1, x)", Ok("bind")),
            ("a.?b", Err("unsupported syntax '.?'")),
            ("a.`b`", Err("unsupported syntax: '`'")),
            ("[?a]", Err("unsupported syntax '?'")),
            ("a b c", Err("Syntax error: mismatched input 'b' expecting <EOF>")),
        ] {
            assert_eq!(function(source), expected.map(str::to_owned).map_err(str::to_owned), "{source}");
        }
        let deep = "(".repeat(400);
        assert_eq!(function(&deep), Err("expression recursion limit exceeded: 250".to_owned()));
    }
}
