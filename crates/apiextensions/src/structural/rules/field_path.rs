//! Resolves a rule's `fieldPath`
//! (<https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#field-path>).

use crate::definition::valid_path::{Tokens, unescape};
use crate::structural::arena::Arena;
use crate::structural::node::{Additional, Node};

/// The path to append to that of the rule's position; `None` when the schema does not contain it.
pub(super) fn normalize(schema: &Arena, node: &Node, path: &str) -> Option<String> {
    let mut text = String::new();
    let mut place = Some(node);
    let mut tokens = Tokens::new(path);
    while let Some(token) = tokens.next() {
        let name = match token {
            "[" => {
                let quoted = tokens.next()?.strip_prefix('\'')?.strip_suffix('\'')?;
                let name = unescape(quoted).ok()?;
                (tokens.next()? == "]").then_some(name)?
            }
            "." => tokens.next()?.to_owned(),
            _ => return None,
        };
        let node = place?;
        if node.properties.len > 0 {
            place = Some(schema.property(node, &name)?);
            if !text.is_empty() {
                text.push('.');
            }
            text.push_str(&name);
        } else if node.additional != Additional::Absent {
            place = schema.additional(node);
            text.push_str(&format!("[{name}]"));
        } else {
            return None;
        }
    }
    Some(text)
}
