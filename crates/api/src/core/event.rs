//! What happened to an object.

pub(crate) mod strategy;
pub(crate) mod table;

use super::GROUP;
use crate::declare::Declare;
use pintle_machinery::ValueExt;
use pintle_registry::{Resource, SelectableField};

/// The declaration.
pub fn resource() -> Resource {
    GROUP
        .namespaced("Event", "events")
        .short_names(["ev"])
        .selectable(selectable_fields())
        .ruled(strategy::EventStrategy)
        .prints(table::columns, table::cells)
}

/// What events can be selected by, in core's names.
pub(crate) fn selectable_fields() -> Vec<SelectableField> {
    let mut fields: Vec<SelectableField> = PATHS.map(SelectableField::new).into();
    fields.push(SelectableField {
        value: |event, _| match event.str_at("source.component") {
            "" => event.str_at("reportingComponent").to_owned(),
            component => component.to_owned(),
        },
        ..SelectableField::new("source")
    });
    fields
}

const PATHS: [&str; 10] = [
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "type",
];
