//! Parses text into a tree: <https://github.com/google/cel-spec/blob/master/doc/langdef.md#syntax>.
//!
//! A hand-written recursive-descent parser (for the reasons see `docs/decisions/0007-cel.md`). Its limits are cel-go's:
//! the length of an expression, its nesting, and the depth of the operator tree; they bound the recursion of all code
//! that walks a tree. In addition the number of nodes is bounded, since the macros of optionals copy their targets.

mod lexer;
mod literal;
mod macros;
mod nodes;
mod parser;
mod token;

pub(crate) use nodes::Dialect;
pub(crate) use parser::parse;
