//! A compiled expression.

use crate::CompileError;
use pintle_cel::{Program, types::Type};

/// An expression, compiled once; an expression that does not compile fails when it is evaluated.
#[derive(Debug)]
pub struct Expression {
    source: Box<str>,
    compiled: Result<Program, CompileError>,
    /// An upper bound of the recursion of an evaluation, with the variables it reads.
    nesting: usize,
}

impl Expression {
    pub(crate) fn new(source: &str, compiled: Result<Program, CompileError>, nesting: usize) -> Expression {
        // A server keeps thousands of expressions.
        Expression { source: source.into(), compiled: compiled.map(Program::without_ast), nesting }
    }

    /// The source text.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The error of the compilation, if it failed.
    pub fn error(&self) -> Option<&CompileError> {
        self.compiled.as_ref().err()
    }

    /// The type of the result; `None` if the expression does not compile.
    pub fn result_type(&self) -> Option<&Type> {
        self.compiled.as_ref().ok().map(Program::result_type)
    }

    pub(crate) fn program(&self) -> Result<&Program, &CompileError> {
        self.compiled.as_ref()
    }

    pub(crate) fn nesting(&self) -> usize {
        self.nesting
    }
}
