//! Checks that a run has exercised what it checks: a run without requests finds no violation either.

use super::{
    history::{Answer, Call, History, Operation},
    recorder::Recorder,
    resource::Resource,
    watching::OVER,
};

/// The behaviors that a run has not exercised.
pub(super) fn missing(history: &History, recorders: &[Recorder], faults: usize) -> Vec<String> {
    let mut missing = missing_requests(history);
    let mut need = |is_there: bool, what: String| missing.extend((!is_there).then_some(what));
    for Recorder { server, resource, events, .. } in recorders {
        need(!events.is_empty(), format!("the recorder of {resource:?} by server {server} had no events"));
    }
    let made = history.faults.lock().unwrap().len();
    need(made == faults, format!("there were {made} faults, and not {faults}"));
    missing
}

/// The kinds of requests and watches that were not exercised until now. They are random, so that a run goes on until
/// none is missing.
pub(super) fn missing_requests(history: &History) -> Vec<String> {
    let (operations, watches) = (history.operations.lock().unwrap(), history.watches.lock().unwrap());
    let mut missing = Vec::new();
    let mut need = |is_there: bool, what: String| missing.extend((!is_there).then_some(what));
    for resource in Resource::ALL {
        for (call, is_of) in CALLS {
            let mut answered = operations.iter().filter(|operation| operation.resource == resource);
            let is_there = answered.any(|operation| is_of(&operation.call) && is_answered(operation));
            need(is_there, format!("no {call} of {resource:?} was answered"));
        }
        let mut of_resource = watches.iter().filter(|watch| watch.resource == resource);
        let is_there = of_resource.any(|watch| !watch.events.is_empty() && watch.end == OVER);
        need(is_there, format!("no watch of {resource:?} had events until its time was over"));
    }
    let is_protobuf = |operation: &Operation| operation.is_protobuf && is_answered(operation);
    need(operations.iter().any(is_protobuf), "no response was protobuf".to_owned());
    let is_expired = |operation: &Operation| matches!(operation.answer, Answer::Expired(_));
    let is_there = history.compacted.is_none() || operations.iter().any(is_expired);
    need(is_there, "no request was for compacted history".to_owned());
    missing
}

type IsOf = fn(&Call) -> bool;

/// The requests that a run has in any case.
const CALLS: [(&str, IsOf); 6] = [
    ("create", |call| matches!(call, Call::Create { .. })),
    ("update", |call| matches!(call, Call::Update { .. })),
    ("patch", |call| matches!(call, Call::Merge { .. })),
    ("delete", |call| matches!(call, Call::Delete { .. })),
    ("get", |call| matches!(call, Call::Get { .. })),
    ("list", |call| matches!(call, Call::List { .. })),
];

fn is_answered(operation: &Operation) -> bool {
    matches!(operation.answer, Answer::Object(_) | Answer::Deleted(_) | Answer::Items(..))
}

#[test]
fn a_run_without_requests_is_missing_everything() {
    let missing = missing(&History::new(None), &[Recorder::new(0, Resource::Widgets, 0)], 1);
    assert_eq!(missing.len(), Resource::ALL.len() * (CALLS.len() + 1) + 3, "{missing:?}");
}
