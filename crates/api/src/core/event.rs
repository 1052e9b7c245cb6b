//! What happened to an object.

pub(crate) mod strategy;
pub(crate) mod table;

use super::GROUP;
use crate::declare::Declare;
use pintle_machinery::ValueExt;
use pintle_registry::{Resource, SelectableField};
use std::time::Duration;

/// The declaration. Events are kept for as long as `time_to_live`; zero is for ever.
pub fn resource(time_to_live: Duration) -> Resource {
    GROUP
        .namespaced("Event", "events")
        .short_names(["ev"])
        .selectable(selectable_fields())
        .ruled(strategy::EventStrategy { time_to_live })
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
