//! Compiles expressions.

use crate::compile_error::CompileErrors;
use crate::environment::Environment;
use crate::program::Program;
use crate::source::Source;
use crate::stack::{is_deep, with_room};
use crate::{checker, syntax};

impl Environment {
    /// Parses, checks and plans an expression.
    ///
    /// # Errors
    /// All errors of the expression, in the form that clients see.
    pub fn compile(&self, source: &str) -> Result<Program, CompileErrors> {
        let deep = is_deep(source);
        with_room(deep, || self.compile_here(source, deep))
            .unwrap_or_else(|error| Err(CompileErrors::instantiation(error.to_string(), None)))
    }

    fn compile_here(&self, source: &str, deep: bool) -> Result<Program, CompileErrors> {
        let source = Source::new(source);
        let ast = syntax::parse(&source, self.dialect()).map_err(|issues| source.report(issues))?;
        let checked = checker::check(ast, self, &source).map_err(|issues| source.report(issues))?;
        let result_type = checked.result_type().clone();
        Program::new(checked, self.provider(), deep)
            .map_err(|message| CompileErrors::instantiation(message, Some(result_type)))
    }
}
