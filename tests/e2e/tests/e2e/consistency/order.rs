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
    resource::{tags, version},
    watches,
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
                    match self.position(operation, floor) {
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
                From::State(None) => floors.at(watch.begun),
                From::State(Some(version)) | From::After(version) => version,
            };
            if let Err(wrong) = watches::check(timeline, watch, oldest) {
                violations.push(format!("{wrong}: {watch}"));
            }
        }
        drop((operations, watches));
        self.violations.append(&mut violations);
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
            (Call::List { read, group }, Answer::Items(at, items)) => {
                let is_old = match read {
                    Read::Newest | Read::Pages => *at < floor,
                    Read::NotOlderThan(wanted) => at < wanted,
                    Read::Exact(wanted) => at != wanted,
                };
                if is_old {
                    return Err("is older than it must be".to_owned());
                }
                let state = timeline.state(*at, *group);
                if state != *items {
                    return Err(format!("is not the state at {at}: {state:?}"));
                }
                Ok(Some(*at))
            }
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
            (_, Answer::Object(_) | Answer::Deleted(_) | Answer::Items(..)) => Ok(effect),
        }
    }
}
