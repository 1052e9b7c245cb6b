//! What happened to an object: the same objects as core events, in which shape they are stored.

use super::{
    GROUP,
    conversion::{CONVERSION, to_core},
};
use crate::core::event::{self as core_event, strategy::EventStrategy, table};
use crate::declare::Declare;
use jiff::Timestamp;
use pintle_machinery::{GroupVersionKind, Value};
use pintle_registry::{Cell, Resource, SelectableField};
use std::time::Duration;

/// The declaration. Events are kept for as long as `time_to_live`; zero is for ever.
pub fn resource(time_to_live: Duration) -> Resource {
    let mut resource = GROUP
        .namespaced("Event", "events")
        .short_names(["ev"])
        .selectable(core_event::selectable_fields().into_iter().filter_map(renamed))
        .ruled(EventStrategy { time_to_live })
        .prints(table::columns, cells);
    resource.storage.kind = GroupVersionKind::new("", "v1", "Event");
    resource.conversion = Some(CONVERSION);
    resource
}

/// A core event's field under its newer name. The values are those of the stored object, so the fields stand in core's
/// order.
fn renamed(field: SelectableField) -> Option<SelectableField> {
    let name = match field.name.split_once('.') {
        Some(("involvedObject", member)) => format!("regarding.{member}"),
        None if field.name == "reportingComponent" => "reportingController".to_owned(),
        None if field.name == "source" => return None,
        _ => field.name.clone(),
    };
    Some(SelectableField { name, ..field })
}

fn cells(event: &Value, now: Timestamp) -> Vec<Cell> {
    table::cells(&to_core(event.clone()), now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_stand_in_the_order_of_the_stored_kind() {
        let core = core_event::selectable_fields();
        let own = resource(Duration::ZERO).selectable_fields;
        assert_eq!(own.len() + 1, core.len());
        for (own, core) in own.iter().zip(&core) {
            let name = own.name.replace("regarding", "involvedObject").replace("Controller", "Component");
            assert_eq!(name, core.name);
        }
    }
}
