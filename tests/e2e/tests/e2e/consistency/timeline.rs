//! The ordered writes of a resource, and the states between them.

use super::{
    history::{Event, Kind},
    recorder::Recorder,
    resource::{Resource, Selection, name, tags, uid},
};
use serde_json::Value;
use std::{collections::BTreeMap, fmt::Write};

/// The events of a resource as the recorders have them.
pub(super) struct Timeline {
    pub(super) resource: Resource,
    pub(super) events: Vec<Event>,
    /// For each event, the index of the event before it of the same object.
    previous: Vec<Option<usize>>,
    by_name: BTreeMap<String, Vec<usize>>,
}

impl Timeline {
    /// The events of the first recorder of the resource, which is compared with the others.
    pub(super) fn new(resource: Resource, recorders: &[Recorder], violations: &mut Vec<String>) -> Timeline {
        let mut of_resource = recorders.iter().filter(|recorder| recorder.resource == resource);
        let events = of_resource.next().unwrap().events.clone();
        let outline = |events: &[Event]| -> Vec<(u64, Kind, String)> {
            let outline = |event: &Event| (event.version, event.kind.clone(), name(&event.object).to_owned());
            events.iter().map(outline).collect()
        };
        for other in of_resource {
            let (here, there) = (outline(&events), outline(&other.events));
            if let Some(at) = (0..here.len().max(there.len())).find(|&at| here.get(at) != there.get(at)) {
                violations.push(format!(
                    "server 0 sends {:?}, server {} {:?} of {resource:?}",
                    here.get(at),
                    other.server,
                    there.get(at)
                ));
            }
        }
        let mut by_name: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        let mut previous = Vec::new();
        for (index, event) in events.iter().enumerate() {
            let of_object = by_name.entry(name(&event.object).to_owned()).or_default();
            previous.push(of_object.last().copied());
            of_object.push(index);
        }
        Timeline { resource, events, previous, by_name }
    }

    /// The object before an event.
    pub(super) fn before(&self, index: usize) -> Option<&Value> {
        let before = &self.events[self.previous[index]?];
        (before.kind != Kind::Deleted).then_some(&before.object)
    }

    /// The event at a version.
    pub(super) fn at(&self, version: u64) -> Option<&Event> {
        let index = self.events.binary_search_by_key(&version, |event| event.version);
        index.ok().map(|index| &self.events[index])
    }

    /// A version, and those of the events after it.
    pub(super) fn versions(&self, from: u64) -> impl Iterator<Item = u64> {
        let skipped = self.events.partition_point(|event| event.version <= from);
        std::iter::once(from).chain(self.events[skipped..].iter().map(|event| event.version))
    }

    /// An object at a version.
    pub(super) fn object(&self, name: &str, version: u64) -> Option<&Value> {
        let of_object = self.by_name.get(name)?;
        let count = of_object.partition_point(|&index| self.events[index].version <= version);
        let event = &self.events[of_object[count.checked_sub(1)?]];
        (event.kind != Kind::Deleted).then_some(&event.object)
    }

    /// The versions of the objects at a version.
    pub(super) fn state(&self, version: u64, selection: Selection) -> BTreeMap<String, u64> {
        let objects = self.by_name.keys().filter_map(|name| self.object(name, version));
        let objects = objects.filter(|object| selection.has(object));
        objects.map(|object| (name(object).to_owned(), super::resource::version(object))).collect()
    }

    /// The first version from `from` on at which the object is as wanted.
    pub(super) fn first(
        &self,
        name: &str,
        from: u64,
        is_wanted: impl Fn(Option<&Value>) -> bool,
    ) -> Option<u64> {
        let of_object = self.by_name.get(name).map(Vec::as_slice).unwrap_or_default();
        let count = of_object.partition_point(|&index| self.events[index].version <= from);
        let later = of_object[count..].iter().map(|&index| self.events[index].version);
        std::iter::once(from).chain(later).find(|&version| is_wanted(self.object(name, version)))
    }

    /// The events after a version that a watch with this selection gets.
    pub(super) fn selected(&self, after: u64, selection: Selection) -> impl Iterator<Item = Event> {
        let skipped = self.events.partition_point(|event| event.version <= after);
        (skipped..self.events.len()).filter_map(move |index| self.select(index, selection))
    }

    fn select(&self, index: usize, selection: Selection) -> Option<Event> {
        let event = &self.events[index];
        let before = self.before(index).filter(|object| selection.has(object));
        let is_selected = event.kind != Kind::Deleted && selection.has(&event.object);
        let (kind, object) = match (before, is_selected) {
            (None, false) => return None,
            (None, true) => (Kind::Added, event.object.clone()),
            (Some(_), true) => (Kind::Modified, event.object.clone()),
            (Some(before), false) => {
                let mut object = before.clone();
                object["metadata"]["resourceVersion"] = event.version.to_string().into();
                (Kind::Deleted, object)
            }
        };
        Some(Event { kind, object, ..event.clone() })
    }

    /// The last events of an object up to a version and the first ones after it, for messages.
    pub(super) fn describe(&self, name: &str, around: u64) -> String {
        let of_object = self.by_name.get(name).map(Vec::as_slice).unwrap_or_default();
        let count = of_object.partition_point(|&index| self.events[index].version <= around);
        let mut text = format!("\n  the history of {name} around {around}:");
        for &index in &of_object[count.saturating_sub(4)..(count + 3).min(of_object.len())] {
            let Event { kind, version, object, .. } = &self.events[index];
            let _ = write!(text, "\n    {version} {kind:?}, writes {:?}, uid {}", tags(object), uid(object));
        }
        text
    }
}
