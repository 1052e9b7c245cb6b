//! The compiled rules of a schema as a tree: only nodes with rules in or below them.

use std::sync::Arc;

use super::compile::{PreexistingExpressions, RuleScope};
use super::compile_effort::CompileEffort;
use super::compiled_rule::CompiledRule;
use super::decl_type::DeclType;
use super::view::View;
use crate::structural::arena::Arena;
use crate::structural::node::{Additional, Constraint, Flags, Node, NodeId, Rule};

/// A node with rules, or with such nodes below it.
#[derive(Debug)]
pub(super) struct RuleNode {
    /// The node whose values the rules apply to.
    pub(super) node: NodeId,
    pub(super) rules: Box<[(Rule, CompiledRule)]>,
    /// The reason why none of the rules compiled.
    pub(super) error: Option<&'static str>,
    pub(super) view: Arc<View>,
    pub(super) items: Option<Box<RuleNode>>,
    pub(super) additional: Option<Box<RuleNode>>,
    /// Sorted by name.
    pub(super) properties: Box<[(Box<str>, RuleNode)]>,
    pub(super) all_of: Box<[RuleNode]>,
}

impl RuleNode {
    /// Compiles all rules of a schema, whose root is a resource or not. `None` when there are none; rules only inside
    /// `allOf` do not count.
    pub(super) fn build(schema: &Arena, is_resource: bool, effort: &CompileEffort) -> Option<RuleNode> {
        let root = schema.root_node();
        if !root.flags.has(Flags::BELOW_RULES) {
            return None;
        }
        let view = Arc::new(View::of(schema, root, is_resource));
        let decl_type = DeclType::of(schema, root, is_resource).map(Arc::new);
        Builder { schema, effort }.node(schema.root, schema.root, decl_type.as_ref(), &view)
    }
}

struct Builder<'s> {
    schema: &'s Arena,
    effort: &'s CompileEffort,
}

impl Builder<'_> {
    /// Compiles the rules of `rules` for values of `node`: the same node, or one whose `allOf` contains `rules`.
    fn node(
        &self,
        rules: NodeId,
        node: NodeId,
        decl_type: Option<&Arc<DeclType>>,
        view: &Arc<View>,
    ) -> Option<RuleNode> {
        let schema = self.schema;
        let (rules_node, value_node) = (schema.node(rules), schema.node(node));
        let scope = RuleScope::new(schema, value_node, decl_type.cloned());
        let own = rules_node.rules.of(&schema.rules);
        let compiled = if own.is_empty() {
            Some(Vec::new())
        } else {
            scope.compile(own, &PreexistingExpressions::All, self.effort)
        };
        let error = match compiled {
            None => Some("failed to convert to declType for CEL validation rules"),
            Some(_) => None,
        };
        let built = RuleNode {
            node,
            error,
            rules: own.iter().cloned().zip(compiled.unwrap_or_default()).collect(),
            view: Arc::clone(view),
            items: self.items(rules_node, value_node, decl_type, view),
            additional: self.additional(rules_node, value_node, decl_type, view),
            properties: self.properties(rules_node, value_node, decl_type, view),
            all_of: self.all_of(rules_node, node, decl_type, view),
        };
        let is_empty = built.rules.is_empty()
            && built.error.is_none()
            && built.items.is_none()
            && built.additional.is_none()
            && built.properties.is_empty()
            && built.all_of.is_empty();
        (!is_empty).then_some(built)
    }

    fn items(
        &self,
        rules: &Node,
        node: &Node,
        decl_type: Option<&Arc<DeclType>>,
        view: &Arc<View>,
    ) -> Option<Box<RuleNode>> {
        let (rules, node) = (rules.items?, node.items?);
        let decl_type = decl_type.and_then(|decl_type| decl_type.element());
        // The items of what is no list have no type: their rules fail for values that are lists nevertheless.
        let view = match decl_type {
            Some(_) => view.element()?,
            None => view.element().unwrap_or(view),
        };
        self.node(rules, node, decl_type, view).map(Box::new)
    }

    fn additional(
        &self,
        rules: &Node,
        node: &Node,
        decl_type: Option<&Arc<DeclType>>,
        view: &Arc<View>,
    ) -> Option<Box<RuleNode>> {
        let (Additional::Schema(rules), Additional::Schema(node)) = (rules.additional, node.additional)
        else {
            return None;
        };
        let decl_type = decl_type.and_then(|decl_type| decl_type.element());
        self.node(rules, node, decl_type, view.element()?).map(Box::new)
    }

    fn properties(
        &self,
        rules: &Node,
        node: &Node,
        decl_type: Option<&Arc<DeclType>>,
        view: &Arc<View>,
    ) -> Box<[(Box<str>, RuleNode)]> {
        let schema = self.schema;
        let mut built = Vec::new();
        for property in rules.properties.of(&schema.properties) {
            let name = schema.str(property.name);
            let Some(id) = schema.property_id(node, name) else { continue };
            let value_node = schema.node(id);
            let computed;
            let decl_type = match pintle_cel::escape(name) {
                Some(escaped) => match decl_type.and_then(|decl_type| decl_type.field(&escaped)) {
                    Some(known) => known,
                    // Values that expressions cannot read have no rules.
                    None => continue,
                },
                // Expressions cannot name the field, but its own rules can read it.
                None => {
                    let resource = value_node.flags.has(Flags::EMBEDDED_RESOURCE);
                    let Some(found) = DeclType::of(schema, value_node, resource) else { continue };
                    computed = Arc::new(found);
                    &computed
                }
            };
            let computed_view;
            let view = match view.member(name) {
                Some(known) => known,
                None => {
                    let resource = value_node.flags.has(Flags::EMBEDDED_RESOURCE);
                    computed_view = Arc::new(View::of(schema, value_node, resource));
                    &computed_view
                }
            };
            if let Some(node) = self.node(property.node, id, Some(decl_type), view) {
                built.push((name.into(), node));
            }
        }
        built.into_boxed_slice()
    }

    fn all_of(
        &self,
        rules: &Node,
        node: NodeId,
        decl_type: Option<&Arc<DeclType>>,
        view: &Arc<View>,
    ) -> Box<[RuleNode]> {
        let schema = self.schema;
        let alternatives = schema.constraints(rules).iter().find_map(|constraint| match constraint {
            Constraint::AllOf(run) => Some(run.of(&schema.alternatives)),
            _ => None,
        });
        let alternatives = alternatives.unwrap_or_default().iter();
        alternatives.filter_map(|&rules| self.node(rules, node, decl_type, view)).collect()
    }
}
