//! The nodes of a tree that is being built.

use crate::ast::{Expr, ExprId, ExprKind};
use crate::issue::Issue;
use crate::source::Source;

/// The maximum number of nodes of a tree. The longest expression has fewer, unless macros copy.
pub(super) const MAX_NODES: usize = 250_000;

/// The syntax of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Without macros and optionals: cel-go's parser with no option.
    Plain,
    /// With macros and optionals.
    Extended {
        /// Whether `cel.bind` is a macro.
        has_bindings: bool,
        /// Whether `sortBy` is a macro.
        has_lists: bool,
    },
}

/// Assigns ids to nodes, and collects errors after which parsing continues.
pub(super) struct Nodes<'s> {
    pub(super) source: &'s Source<'s>,
    pub(super) dialect: Dialect,
    pub(super) positions: Vec<u32>,
    pub(super) issues: Vec<Issue>,
}

impl Nodes<'_> {
    pub(super) fn id(&mut self, position: u32) -> ExprId {
        self.positions.push(position);
        ExprId::try_from(self.positions.len() - 1).unwrap_or(ExprId::MAX)
    }

    pub(super) fn node(&mut self, position: u32, kind: ExprKind) -> Expr {
        Expr { id: self.id(position), kind }
    }

    pub(super) fn position(&self, id: ExprId) -> u32 {
        self.positions.get(id as usize).copied().unwrap_or(0)
    }

    /// Whether the maximum number of nodes is reached, so that macros must not copy.
    pub(super) fn is_full(&self) -> bool {
        self.positions.len() > MAX_NODES
    }

    /// Reports an error and returns a placeholder.
    pub(super) fn error(&mut self, position: u32, message: impl Into<String>) -> Expr {
        self.issues.push(Issue { location: self.source.location(position), message: message.into() });
        self.node(position, ExprKind::Unspecified)
    }
}
