//! Validates the nodes that a slice or a device is available on: one node, selected nodes or all nodes.

use crate::{core::pod_spec::validate_node_selector, field_checks::invalid_each};
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt, validation::name_is_dns_subdomain,
};

/// The node selections in use, and their errors.
pub(super) struct NodeSelection {
    pub(super) fields: Vec<String>,
    pub(super) errors: ErrorList,
    /// The number of errors before those of the flags.
    pub(super) errors_of_selector: usize,
}

impl NodeSelection {
    /// The selections that slices and devices share.
    pub(super) fn of(holder: &Value, empty_name: &str, path: &FieldPath) -> NodeSelection {
        let mut selection =
            NodeSelection { fields: Vec::new(), errors: ErrorList::new(), errors_of_selector: 0 };
        if let Some(name) = holder.at("nodeName").and_then(Value::as_str) {
            let path = path.child("nodeName");
            if name.is_empty() {
                selection.errors.push(FieldError::invalid(&path, name, empty_name));
            } else {
                selection.fields.push("`nodeName`".to_owned());
                selection.errors.extend(invalid_each(&path, name, name_is_dns_subdomain(name, false)));
            }
        }
        if let Some(selector) = holder.at("nodeSelector") {
            selection.fields.push("`nodeSelector`".to_owned());
            selection.errors.extend(validate_node_selector(selector, false, &path.child("nodeSelector")));
        }
        selection.errors_of_selector = selection.errors.len();
        selection.add_flag(holder, "allNodes", path);
        selection
    }

    pub(super) fn add_flag(&mut self, holder: &Value, field: &str, path: &FieldPath) {
        match holder.at(field).and_then(Value::as_bool) {
            Some(true) => self.fields.push(format!("`{field}`")),
            Some(false) => {
                let detail = "must be either unset or set to true";
                self.errors.push(FieldError::invalid(&path.child(field), false, detail));
            }
            None => {}
        }
    }
}
