//! From text to a tree: <https://github.com/google/cel-spec/blob/master/doc/langdef.md#syntax>.
//!
//! A recursive-descent parser of our own (`docs/decisions/0007-cel.md` says why). Its limits are cel-go's: how long an
//! expression is, how deep it nests, and how deep the tree of operators is; they bound the recursion of everything that
//! walks a tree. In addition the number of nodes is bounded, since the macros of optionals copy what they are called on.

mod lexer;
mod literal;
mod macros;
mod parser;
mod token;

pub(crate) use parser::parse;
