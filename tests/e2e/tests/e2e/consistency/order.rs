//! Checks that requests took effect between their begin and their end: linearizability.
//!
//! The order of the writes is known: that of their resource versions. So it suffices to go through the responses in the
//! order of time. The floor of a request is the newest version that anybody had seen, or that a read must have come from,
//! before the request began. A write gets a later version. A consistent read shows a state at or after the floor: the
//! earliest one that it fits, which raises the floor of later requests.

use super::{
    check::Check,
    history::{Answer, Call, From, Operation, Read},
    recorder::Recorder,
    resource::{Resource, is_terminating, tags, uid, version},
    watches,
    watching::EXPIRED,
};
use serde_json::Value;
use std::time::Instant;

enum Mark<'a> {
    Ended(&'a Operation),
    Seen(u64),
}

/// The floors over time.
struct Floors(Vec<(Instant, u64)>);

impl Floors {
    /// The floor of what begins at an instant.
    fn at(&self, begun: Instant) -> u64 {
        let count = self.0.partition_point(|(at, _)| *at < begun);
        count.checked_sub(1).map_or(0, |last| self.0[last].1)
    }

    /// When this version was first seen, or a later one.
    fn since(&self, version: u64) -> Option<Instant> {
        let older = self.0.partition_point(|(_, seen)| *seen < version);
        self.0.get(older).map(|(at, _)| *at)
    }

    fn raise(&mut self, at: Instant, version: u64) {
        if self.0.last().is_none_or(|(_, last)| *last < version) {
            self.0.push((at, version));
        }
    }
}

impl Check<'_> {
    /// Checks the responses in the order of time, and that each list and each watch shows states of the history.
    pub(super) fn check_order(&mut self, start: u64, recorders: &[Recorder]) {
        let operations = self.history.operations.lock().unwrap();
        let watches = self.history.watches.lock().unwrap();
        let mut marks: Vec<(Instant, Mark)> =
            operations.iter().map(|operation| (operation.ended, Mark::Ended(operation))).collect();
        let events = watches.iter().flat_map(|watch| &watch.events);
        let events = events.chain(recorders.iter().flat_map(|recorder| &recorder.events));
        marks.extend(events.map(|event| (event.seen, Mark::Seen(event.version))));
        marks.sort_by_key(|(at, _)| *at);
        let first = marks.first().map_or_else(Instant::now, |(at, _)| *at);
        let begin = operations.iter().map(|operation| operation.begun).min().unwrap_or(first).min(first);
        let mut floors = Floors(vec![(begin, start)]);
        let mut violations = Vec::new();
        for (at, mark) in marks {
            match mark {
                Mark::Seen(version) => floors.raise(at, version),
                Mark::Ended(operation) => {
                    let floor = floors.at(operation.begun);
                    let position = match operation.answer {
                        Answer::Expired(version) => {
                            self.check_expired(&floors, version, operation.ended, None).map(|()| None)
                        }
                        _ => self.position(operation, floor),
                    };
                    match position {
                        Ok(position) => position.into_iter().for_each(|position| floors.raise(at, position)),
                        Err(wrong) => {
                            let timeline = &self.timelines[&operation.resource];
                            let around = operation.call.name().map(|name| timeline.describe(name, floor));
                            let around = around.unwrap_or_default();
                            violations.push(format!("{operation} {wrong}; {floor} was seen before{around}"));
                        }
                    }
                }
            }
        }
        for watch in watches.iter() {
            let timeline = &self.timelines[&watch.resource];
            let oldest = match watch.from {
                From::State(None) | From::UnmarkedState(None) => floors.at(watch.begun),
                From::State(Some(version)) | From::UnmarkedState(Some(version)) | From::After(version) => {
                    version
                }
            };
            let expired = match watch.from {
                _ if !watch.end.contains(EXPIRED) => Ok(()),
                From::After(version) => {
                    self.check_expired(&floors, version, watch.ended, Some(watch.resource))
                }
                _ => Err("a state is too old".to_owned()),
            };
            if let Err(wrong) = expired.and_then(|()| watches::check(timeline, watch, oldest)) {
                violations.push(format!("{wrong}: {watch}"));
            }
        }
        drop((operations, watches));
        self.violations.append(&mut violations);
    }

    /// Checks that history from a version on could be compacted when a request ended. Watches of custom resources do not
    /// reach back beyond a restart.
    fn check_expired(
        &self,
        floors: &Floors,
        version: u64,
        ended: Instant,
        watched: Option<Resource>,
    ) -> Result<(), String> {
        let since = floors.since(version).ok_or("was never seen")?;
        let age = ended.saturating_duration_since(since);
        // It was made before it was seen.
        let is_compacted = self.history.compacted.is_some_and(|compacted| 2 * age > compacted);
        let faults = self.history.faults.lock().unwrap();
        let mut later = faults.iter().filter(|(at, _)| *at > since);
        let is_forgotten = later.any(|(_, is_lost)| *is_lost || watched == Some(Resource::Widgets));
        match is_compacted || is_forgotten {
            true => Ok(()),
            false => Err(format!("is told that {version} is too old after {age:?}")),
        }
    }

    /// The version that a response proves to have been reached.
    fn position(&self, operation: &Operation, floor: u64) -> Result<Option<u64>, String> {
        let timeline = &self.timelines[&operation.resource];
        let effect = self.effect(operation);
        if let Some(effect) = effect.filter(|effect| *effect <= floor) {
            return Err(format!("took effect at {effect}"));
        }
        let first = |is_wanted: &dyn Fn(Option<&Value>) -> bool| {
            let first = timeline.first(operation.call.name().unwrap_or_default(), floor, is_wanted);
            first.map(Some).ok_or_else(|| "shows an old state".to_owned())
        };
        match (&operation.call, &operation.answer) {
            (_, Answer::Unknown) => Ok(None),
            (Call::DeleteMany { selection }, Answer::Items(at, items)) => {
                if *at < floor {
                    return Err("is older than it must be".to_owned());
                }
                let state = timeline.state(*at, *selection);
                if state != *items {
                    return Err(format!("is not the state at {at}: {state:?}"));
                }
                let mut position = *at;
                for version in items.values() {
                    let uid = timeline.at(*version).map(|event| uid(&event.object)).unwrap_or_default();
                    let ends = [self.terminations.get(uid), self.deletions.get(uid)];
                    let Some(end) = ends.into_iter().flatten().min() else {
                        return Err(format!("deleted {uid}, and it is not deleted"));
                    };
                    position = position.max(*end);
                }
                Ok(Some(position))
            }
            (Call::List { read, selection }, Answer::Items(at, items)) => {
                let is_old = match read {
                    Read::Newest | Read::Rest(_) => *at < floor,
                    Read::NotOlderThan(wanted) => at < wanted,
                    Read::Exact(wanted) => at != wanted,
                };
                if is_old {
                    return Err("is older than it must be".to_owned());
                }
                let mut state = timeline.state(*at, *selection);
                if let Read::Rest(after) = read {
                    state.retain(|name, _| name > after);
                }
                if state != *items {
                    return Err(format!("is not the state at {at}: {state:?}"));
                }
                Ok(Some(*at))
            }
            // The object has finalizers, and is being deleted.
            (Call::Delete { .. }, Answer::Object(at)) => match timeline.at(*at) {
                Some(event) if is_terminating(&event.object) => {
                    first(&|object| object.map(version) == Some(*at))
                }
                _ => Err("did not delete".to_owned()),
            },
            (Call::Get { version: None, .. }, Answer::Object(at)) => {
                first(&|object| object.map(version) == Some(*at))
            }
            (Call::Get { version: Some(wanted), name }, Answer::Object(at)) => {
                match timeline.first(name, *wanted, |object| object.map(version) == Some(*at)) {
                    Some(_) => Ok(Some(*at)),
                    None => Err("is older than it must be".to_owned()),
                }
            }
            (Call::Get { version: Some(_), .. }, Answer::Refused(404)) => Ok(None),
            (Call::Create { .. }, Answer::Refused(409)) => first(&|object| object.is_some()),
            (_, Answer::Refused(404)) => first(&|object| object.is_none()),
            (
                Call::Update { version: Some(wanted), .. } | Call::Delete { version: Some(wanted), .. },
                Answer::Refused(409),
            ) => first(&|object| object.map(version) != Some(*wanted)),
            (Call::Test { expected, .. }, Answer::Refused(422)) => {
                first(&|object| object.map(tags).unwrap_or_default()[0] != Some(expected))
            }
            (_, Answer::Refused(status)) => Err(format!("was refused with {status}")),
            (_, Answer::Object(_) | Answer::Deleted(_) | Answer::Items(..) | Answer::Expired(_)) => {
                Ok(effect)
            }
        }
    }
}
