//! Checks that a watch got a run of the history.

use super::{
    history::{Event, From, Kind, Watched},
    resource::{name, version},
    timeline::Timeline,
    watching::OVER,
};
use std::collections::BTreeMap;

/// Checks the events of a watch. Its initial events must show a state that is not older than `oldest`.
pub(super) fn check(timeline: &Timeline, watch: &Watched, oldest: u64) -> Result<(), String> {
    match watch.from {
        From::After(version) => return follow(timeline, watch, &watch.events, version),
        From::UnmarkedState(_) => return unmarked(timeline, watch, oldest),
        From::State(_) => {}
    }
    let end_of_state = |event: &Event| event.kind == (Kind::Bookmark { ends_initial_events: true });
    let Some(end) = watch.events.iter().position(end_of_state) else {
        return match watch.end == OVER {
            true => Err("no bookmark ends the initial events".to_owned()),
            false => Ok(()),
        };
    };
    let (initial, later) = watch.events.split_at(end);
    let at = later[0].version;
    let mut state = BTreeMap::new();
    for Event { object, .. } in initial.iter().filter(|event| event.kind == Kind::Added) {
        state.insert(name(object).to_owned(), version(object));
    }
    let expected = timeline.state(at, watch.selection);
    if at < oldest {
        return Err(format!("the initial events are the state at {at}, which is older than {oldest}"));
    }
    if state != expected || state.len() != initial.len() {
        return Err(format!("the initial events are not the state at {at}, {expected:?}"));
    }
    follow(timeline, watch, &later[1..], at)
}

/// Checks a watch whose initial events nothing ends: they must be some state, and the others the events after it.
fn unmarked(timeline: &Timeline, watch: &Watched, oldest: u64) -> Result<(), String> {
    let Some(first) = watch.events.first() else { return Ok(()) };
    let follows = |at: u64| {
        let state = timeline.state(at, watch.selection);
        let (initial, later) = watch.events.split_at(state.len().min(watch.events.len()));
        let is_shown = |event: &Event| {
            event.kind == Kind::Added && state.get(name(&event.object)) == Some(&event.version)
        };
        initial.iter().all(is_shown) && follow(timeline, watch, later, at).is_ok()
    };
    // The first event is of the state, or the state is empty.
    let empty = Some(first.version - 1).filter(|at| *at >= oldest).into_iter();
    let mut states = empty.chain(timeline.versions(first.version.max(oldest)));
    match states.any(follows) {
        true => Ok(()),
        false => Err(format!("the events begin with no state from {oldest} on")),
    }
}

/// Checks that the events are those after a version: none is missing, doubled or early, and no bookmark is ahead of them.
fn follow(timeline: &Timeline, watch: &Watched, events: &[Event], after: u64) -> Result<(), String> {
    let mut expected = timeline.selected(after, watch.selection).peekable();
    let mut reached = after;
    for event in events {
        if event.version < reached {
            return Err(format!("{event} comes after {reached}"));
        }
        reached = event.version;
        if matches!(event.kind, Kind::Bookmark { .. }) {
            if let Some(missing) = expected.next_if(|next| next.version <= reached) {
                return Err(format!("the bookmark at {reached} comes before {missing}"));
            }
            continue;
        }
        let next = expected.next();
        let is_next =
            |next: &Event| next.kind == event.kind && watch.form.part(next.object.clone()) == event.object;
        if !next.as_ref().is_some_and(is_next) {
            let next = next.map_or_else(|| "nothing".to_owned(), |next| next.to_string());
            return Err(format!("{event} comes in place of {next}"));
        }
    }
    Ok(())
}
