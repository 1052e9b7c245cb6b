//! Compares what clients and watches got with the ordered writes.

use super::{
    history::{Answer, Call, Event, History, Kind, Operation, Shown},
    recorder::Recorder,
    resource::{Resource, has_finalizers, is_terminating, name, tags, uid, version},
    timeline::Timeline,
};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The ordered writes of all resources, and what is wrong with the history.
pub(super) struct Check<'a> {
    pub(super) history: &'a History,
    pub(super) timelines: BTreeMap<Resource, Timeline>,
    pub(super) violations: Vec<String>,
    /// The version of the event that each write made, by resource and tag.
    effects: HashMap<(Resource, String), u64>,
    /// The version at which each object was deleted, by UID.
    pub(super) deletions: HashMap<String, u64>,
    /// The version at which the deletion of each object with finalizers began, by UID.
    pub(super) terminations: HashMap<String, u64>,
}

impl<'a> Check<'a> {
    pub(super) fn new(history: &'a History, recorders: &[Recorder]) -> Check<'a> {
        let mut violations = history.violations();
        let timelines =
            Resource::ALL.map(|resource| (resource, Timeline::new(resource, recorders, &mut violations)));
        let timelines = timelines.into_iter().collect();
        let (effects, deletions, terminations) = Default::default();
        Check { history, timelines, violations, effects, deletions, terminations }
    }

    /// The version of the event that an operation made.
    pub(super) fn effect(&self, operation: &Operation) -> Option<u64> {
        match (&operation.call, &operation.answer) {
            (_, Answer::Deleted(uid)) => self.deletions.get(uid).copied(),
            (call, _) => self.effects.get(&(operation.resource, call.tag()?.to_owned())).copied(),
        }
    }

    /// Checks that no version is used twice, that the events of each object are the life of an object, and that each
    /// object that anybody saw is in the history.
    pub(super) fn check_events(&mut self) {
        let (mut violations, mut versions, mut uids) = (Vec::new(), HashSet::new(), HashSet::new());
        for timeline in self.timelines.values() {
            for (index, event) in timeline.events.iter().enumerate() {
                let before = timeline.before(index);
                let mut wrong = life(timeline.resource, &event.kind, before, &event.object);
                if !versions.insert(event.version) {
                    wrong.push("is a version that was used before".to_owned());
                }
                if before.is_none() && !uids.insert(uid(&event.object).to_owned()) {
                    wrong.push("has a UID that was used before".to_owned());
                }
                for (old, new) in before.map(tags).unwrap_or_default().into_iter().zip(tags(&event.object)) {
                    let Some(tag) = new.filter(|_| new != old) else { continue };
                    let key = (timeline.resource, tag.to_owned());
                    if event.kind != Kind::Deleted && self.effects.insert(key, event.version).is_some() {
                        wrong.push(format!("is the second effect of the write {tag}"));
                    }
                }
                if event.kind == Kind::Deleted {
                    self.deletions.insert(uid(&event.object).to_owned(), event.version);
                } else if begins_termination(before, event) {
                    self.terminations.insert(uid(&event.object).to_owned(), event.version);
                }
                violations.extend(wrong.into_iter().map(|wrong| {
                    let at = event.version;
                    format!(
                        "{:?} at {at} {wrong}{}",
                        timeline.resource,
                        timeline.describe(name(&event.object), at)
                    )
                }));
            }
        }
        for (Shown { resource, version, is_whole }, object) in self.history.objects() {
            let shown =
                |of: &Value| if is_whole { *of == object } else { of["metadata"] == object["metadata"] };
            let timeline = &self.timelines[&resource];
            let is_there =
                timeline.at(version).is_some_and(|event| event.kind != Kind::Deleted && shown(&event.object));
            if !is_there {
                let around = timeline.describe(name(&object), version);
                violations.push(format!("{resource:?} {object} was seen, and is not in the history{around}"));
            }
        }
        self.violations.append(&mut violations);
    }

    /// Checks the effect of each write.
    pub(super) fn check_writes(&mut self) {
        let operations = self.history.operations.lock().unwrap();
        let mut violations = Vec::new();
        let (mut made, mut deleted) = (HashSet::new(), HashSet::new());
        let mut may_delete = HashSet::new();
        for operation in operations.iter() {
            let timeline = &self.timelines[&operation.resource];
            let effect = self.effect(operation);
            match (&operation.call, &operation.answer) {
                (
                    Call::Delete { name, .. } | Call::Update { name, .. } | Call::Release { name, .. },
                    Answer::Unknown,
                ) => {
                    may_delete.insert((operation.resource, Some(*name)));
                }
                (Call::DeleteMany { .. }, Answer::Unknown) => {
                    may_delete.insert((operation.resource, None));
                }
                // The objects of these names are deleted, whatever they have become since they were listed.
                (Call::DeleteMany { .. }, Answer::Items(_, items)) => {
                    let names = items.keys().map(|name| (operation.resource, Some(name.as_str())));
                    may_delete.extend(names);
                }
                (Call::Delete { .. }, Answer::Object(version)) => {
                    made.insert((operation.resource, *version));
                }
                _ => {}
            }
            let wrong = match &operation.answer {
                Answer::Object(version) if operation.call.tag().is_some() && effect != Some(*version) => {
                    // A patch that changes nothing is answered with the present object.
                    Some("was acknowledged, and is not in the history".to_owned())
                }
                Answer::Refused(_) if effect.is_some() => Some("was refused, and has an effect".to_owned()),
                Answer::Deleted(uid) if effect.is_none() => {
                    Some(format!("deleted {uid}, and it is not deleted"))
                }
                // The last finalizer may be removed by several writes at once.
                Answer::Deleted(uid)
                    if !deleted.insert(uid.clone()) && matches!(operation.call, Call::Delete { .. }) =>
                {
                    Some(format!("deleted {uid} again"))
                }
                _ => effect.and_then(|effect| {
                    made.insert((operation.resource, effect));
                    let event = timeline.at(effect).unwrap();
                    let before = timeline.object(name(&event.object), effect - 1);
                    wrong_effect(operation, before, event)
                }),
            };
            violations.extend(wrong.map(|wrong| {
                let around = operation
                    .call
                    .name()
                    .map(|name| timeline.describe(name, effect.or(seen(operation)).unwrap_or(u64::MAX)));
                format!("{operation} {wrong}{}", around.unwrap_or_default())
            }));
        }
        for timeline in self.timelines.values() {
            for (index, event) in timeline.events.iter().enumerate() {
                let name = name(&event.object);
                let may_be_deleted = || {
                    let mut known = [Some(name), None].into_iter();
                    known.any(|name| may_delete.contains(&(timeline.resource, name)))
                };
                let is_known = match event.kind {
                    Kind::Deleted => deleted.contains(uid(&event.object)) || may_be_deleted(),
                    _ if begins_termination(timeline.before(index), event) && may_be_deleted() => true,
                    _ => made.contains(&(timeline.resource, event.version)),
                };
                if !is_known {
                    let around = timeline.describe(name, event.version);
                    violations.push(format!(
                        "{:?} at {} was made by nobody{around}",
                        timeline.resource, event.version
                    ));
                }
            }
        }
        drop(operations);
        self.violations.append(&mut violations);
    }
}

fn seen(operation: &Operation) -> Option<u64> {
    match operation.answer {
        Answer::Object(version) => Some(version),
        _ => None,
    }
}

/// Whether the event begins the deletion of an object with finalizers.
fn begins_termination(before: Option<&Value>, event: &Event) -> bool {
    before.is_some_and(|before| !is_terminating(before)) && is_terminating(&event.object)
}

/// The violations of an event, given the object before it.
fn life(resource: Resource, kind: &Kind, before: Option<&Value>, object: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    let expected = match (kind, before) {
        (Kind::Deleted, Some(_)) => Kind::Deleted,
        (_, Some(_)) => Kind::Modified,
        (_, None) => Kind::Added,
    };
    if *kind != expected {
        wrong.push(format!("is {kind:?} and not {expected:?}"));
    }
    let generation = |object: &Value| object["metadata"]["generation"].as_u64();
    let Some(before) = before else {
        if resource.spec(object).is_some() && generation(object) != Some(1) {
            wrong.push(format!("begins with the generation {:?}", generation(object)));
        }
        return wrong;
    };
    let begins_termination = !is_terminating(before) && is_terminating(object);
    for field in ["uid", "creationTimestamp", "deletionTimestamp"] {
        let may_change = field == "deletionTimestamp" && begins_termination;
        if before["metadata"][field] != object["metadata"][field] && !may_change {
            wrong.push(format!("changes the {field}"));
        }
    }
    if *kind == Kind::Deleted {
        let mut last = before.clone();
        last["metadata"]["resourceVersion"] = object["metadata"]["resourceVersion"].clone();
        if last != *object {
            wrong.push(format!("deletes {object} and not {before}"));
        }
    } else if let (Some(old), Some(new)) = (generation(before), generation(object))
        && new
            != old + u64::from(resource.spec(before) != resource.spec(object)) + u64::from(begins_termination)
    {
        wrong.push(format!("changes the generation from {old} to {new}"));
    }
    wrong
}

/// The violation of a write by its effect, given the object before and after it.
fn wrong_effect(operation: &Operation, before: Option<&Value>, event: &Event) -> Option<String> {
    let (resource, after) = (operation.resource, &event.object);
    let values = |object: Option<&Value>| object.map(|object| resource.values_of(object)).unwrap_or_default();
    let (old, new) = (values(before), values(Some(after)));
    if !operation.call.is_for(name(after)) {
        return Some("wrote another object".to_owned());
    }
    let (has_object, expected) = match &operation.call {
        Call::Create { values, .. } | Call::Generate { values, .. } => (false, values.clone()),
        Call::Update { values, .. } => (true, values.clone()),
        Call::Merge { value, .. } => (true, old.into_iter().chain([value.clone()]).collect()),
        _ => (true, old),
    };
    if before.is_some() != has_object {
        return Some("wrote, and the object before should not have let it".to_owned());
    }
    if let Call::Update { version: Some(wanted), .. } | Call::Delete { version: Some(wanted), .. } =
        operation.call
        && before.map(version) != Some(wanted)
    {
        return Some("ignored its resource version".to_owned());
    }
    if let Call::Test { expected, .. } = &operation.call
        && before.map(tags).unwrap_or_default()[0] != Some(expected)
    {
        return Some("ignored its test".to_owned());
    }
    if event.kind == Kind::Deleted {
        // Finalizers delay a deletion, and the write that removes them ends it.
        let was_held = before.is_some_and(|before| is_terminating(before) && has_finalizers(before));
        let is_delete = matches!(operation.call, Call::Delete { .. });
        return (was_held == is_delete).then(|| "deleted the object".to_owned());
    }
    if is_terminating(after) && !has_finalizers(after) {
        return Some("left what should be deleted".to_owned());
    }
    let finalizers = |object: &Value| object["metadata"]["finalizers"].clone();
    match &operation.call {
        Call::Create { .. } | Call::Generate { .. } | Call::Update { .. } => {}
        Call::Release { .. } if has_finalizers(after) => return Some("left finalizers".to_owned()),
        Call::Release { .. } => {}
        _ if before.map(finalizers) != Some(finalizers(after)) => {
            return Some("changed the finalizers".to_owned());
        }
        _ => {}
    }
    let is_status = matches!(operation.call, Call::Status { .. });
    let old_tags = before.map(tags).unwrap_or_default();
    if old_tags[usize::from(!is_status)] != tags(after)[usize::from(!is_status)] {
        return Some("changed what another write had set".to_owned());
    }
    (new != expected).then(|| format!("left {new:?} and not {expected:?}"))
}
