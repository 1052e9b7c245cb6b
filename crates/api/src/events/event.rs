//! What happened to an object: the same objects as core events, in which shape they are stored.

use super::{GROUP, conversion::CONVERSION};
use crate::core::event::{strategy::EventStrategy, table};
use crate::declare::Declare;
use pintle_machinery::{GroupVersionKind, ValueExt};
use pintle_registry::{Resource, SelectableField};

/// The declaration.
pub fn resource() -> Resource {
    let mut fields: Vec<SelectableField> = REGARDING
        .map(|name| SelectableField {
            value: |event, name| {
                let path = name.replacen("regarding", "involvedObject", 1);
                event.str_at(&path).to_owned()
            },
            ..SelectableField::new(name)
        })
        .into();
    fields.push(SelectableField {
        value: |event, _| event.str_at("reportingComponent").to_owned(),
        ..SelectableField::new("reportingController")
    });
    fields.extend(["reason", "type"].map(SelectableField::new));
    let mut resource = GROUP
        .namespaced("Event", "events")
        .short_names(["ev"])
        .selectable(fields)
        .ruled(EventStrategy)
        .prints(table::columns, table::cells);
    resource.storage.kind = GroupVersionKind::new("", "v1", "Event");
    resource.conversion = Some(CONVERSION);
    resource
}

const REGARDING: [&str; 7] = [
    "regarding.kind",
    "regarding.namespace",
    "regarding.name",
    "regarding.uid",
    "regarding.apiVersion",
    "regarding.resourceVersion",
    "regarding.fieldPath",
];
