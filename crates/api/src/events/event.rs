//! Events in the newer group: the same objects as core events, which is their stored form.

use super::{conversion::CONVERSION, group::GROUP};
use crate::core::event::{self as core_event, strategy::EventStrategy, table};
use crate::declare::Declare;
use pintle_machinery::GroupVersionKind;
use pintle_registry::{Resource, SelectableField};
use std::time::Duration;

/// The declaration of the resource. Events are kept for `time_to_live`; zero keeps them without limit.
pub fn resource(time_to_live: Duration) -> Resource {
    let mut resource = GROUP
        .namespaced("Event", "events")
        .short_names(["ev"])
        .selectable(core_event::selectable_fields().into_iter().filter_map(renamed))
        .ruled(EventStrategy { time_to_live })
        .prints(table::columns, table::cells);
    resource.storage.kind = GroupVersionKind::new("", "v1", "Event");
    resource.conversion = Some(CONVERSION);
    resource
}

/// The selectable field of a core event under its newer name. Values are computed from the stored object, so the fields
/// have core's order.
fn renamed(field: SelectableField) -> Option<SelectableField> {
    let name = match field.name.split_once('.') {
        Some(("involvedObject", member)) => format!("regarding.{member}"),
        None if field.name == "reportingComponent" => "reportingController".to_owned(),
        None if field.name == "source" => return None,
        _ => field.name.clone(),
    };
    Some(SelectableField { name, ..field })
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
