//! Events: reports about the life of an object.

pub(crate) mod strategy;
pub(crate) mod table;

use super::group::GROUP;
use crate::declare::Declare;
use pintle_machinery::ValueExt;
use pintle_registry::{Resource, SelectableField};
use std::time::Duration;

/// The declaration of the resource. Events are kept for `time_to_live`; zero keeps them without limit.
pub fn resource(time_to_live: Duration) -> Resource {
    GROUP
        .namespaced("Event", "events")
        .short_names(["ev"])
        .selectable(selectable_fields())
        .ruled(strategy::EventStrategy { time_to_live })
        .prints(table::columns, table::cells)
}

/// The selectable fields of events, under core's names.
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
