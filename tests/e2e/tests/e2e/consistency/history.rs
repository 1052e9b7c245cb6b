//! The requests and responses of the clients of a run.

use super::{
    form::Form,
    random::Random,
    resource::{GENERATED, Resource, Selection, version},
};
use serde_json::Value;
use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// A request, and its response.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) client: usize,
    pub(super) server: usize,
    pub(super) resource: Resource,
    pub(super) call: Call,
    pub(super) begun: Instant,
    pub(super) ended: Instant,
    pub(super) answer: Answer,
    /// Whether a response was read from protobuf.
    pub(super) is_protobuf: bool,
}

/// A request. `tag` names a write: the object that it leaves has it.
#[derive(Debug, Clone)]
pub(super) enum Call {
    Create {
        name: &'static str,
        tag: String,
        values: BTreeMap<String, String>,
    },
    /// A POST of an object whose name the server generates.
    Generate {
        tag: String,
        values: BTreeMap<String, String>,
    },
    /// A PUT with the resource version, if one is given.
    Update {
        name: &'static str,
        tag: String,
        values: BTreeMap<String, String>,
        version: Option<u64>,
    },
    /// A merge patch that sets one value.
    Merge {
        name: &'static str,
        tag: String,
        value: (String, String),
    },
    /// A JSON patch that tests the tag of the object before it replaces it.
    Test {
        name: &'static str,
        tag: String,
        expected: String,
    },
    /// A merge patch of the status.
    Status {
        name: &'static str,
        tag: String,
    },
    /// A merge patch that removes the finalizers.
    Release {
        name: &'static str,
        tag: String,
    },
    Delete {
        name: &'static str,
        version: Option<u64>,
    },
    /// A DELETE of the collection.
    DeleteMany {
        selection: Selection,
    },
    /// A GET: the newest object, or one not older than a version.
    Get {
        name: &'static str,
        version: Option<u64>,
    },
    List {
        read: Read,
        selection: Selection,
    },
}

/// The state that a list asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Read {
    Newest,
    NotOlderThan(u64),
    Exact(u64),
    /// The newest state after a name: the rest of a list that was compacted between its pages.
    Rest(String),
}

#[derive(Debug)]
pub(super) enum Answer {
    /// No response, or one that does not say whether the write happened.
    Unknown,
    Refused(u16),
    /// The object at this version, or that version alone for a `Status`.
    Object(u64),
    /// The object with this UID was deleted.
    Deleted(String),
    /// The state at this version, or the events after it, were compacted.
    Expired(u64),
    /// The versions of the objects of a list, and the version of the list.
    Items(u64, BTreeMap<String, u64>),
}

impl Call {
    /// The object of the request.
    pub(super) fn name(&self) -> Option<&'static str> {
        match self {
            Call::Create { name, .. }
            | Call::Update { name, .. }
            | Call::Merge { name, .. }
            | Call::Test { name, .. }
            | Call::Status { name, .. }
            | Call::Release { name, .. }
            | Call::Delete { name, .. }
            | Call::Get { name, .. } => Some(name),
            Call::Generate { .. } | Call::DeleteMany { .. } | Call::List { .. } => None,
        }
    }

    pub(super) fn tag(&self) -> Option<&str> {
        match self {
            Call::Create { tag, .. }
            | Call::Generate { tag, .. }
            | Call::Update { tag, .. }
            | Call::Merge { tag, .. }
            | Call::Test { tag, .. }
            | Call::Status { tag, .. }
            | Call::Release { tag, .. } => Some(tag),
            Call::Delete { .. } | Call::DeleteMany { .. } | Call::Get { .. } | Call::List { .. } => None,
        }
    }

    /// Whether the request may be for this object.
    pub(super) fn is_for(&self, name: &str) -> bool {
        match self {
            Call::Generate { .. } => name.starts_with(GENERATED),
            call => call.name().is_none_or(|of_call| of_call == name),
        }
    }
}

/// A watch, and its events until it ended.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) server: usize,
    pub(super) resource: Resource,
    pub(super) selection: Selection,
    pub(super) form: Form,
    pub(super) from: From,
    pub(super) begun: Instant,
    pub(super) ended: Instant,
    pub(super) events: Vec<Event>,
    pub(super) end: String,
}

/// The start of a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum From {
    /// After a version that was seen.
    After(u64),
    /// The state as initial events: the newest one, or one not older than a version.
    State(Option<u64>),
    /// The same without a bookmark at its end.
    UnmarkedState(Option<u64>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Added,
    Modified,
    Deleted,
    Bookmark { ends_initial_events: bool },
}

#[derive(Debug, Clone)]
pub(super) struct Event {
    pub(super) kind: Kind,
    pub(super) version: u64,
    /// `Null` for a bookmark.
    pub(super) object: Value,
    pub(super) seen: Instant,
}

/// An object at a version, or its metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Shown {
    pub(super) resource: Resource,
    pub(super) version: u64,
    pub(super) is_whole: bool,
}

/// All that was seen, by all threads.
#[derive(Default)]
pub(super) struct History {
    /// The age of history that is compacted, if any is.
    pub(super) compacted: Option<Duration>,
    /// The ends of the faults, and whether the history before them was lost.
    pub(super) faults: Mutex<Vec<(Instant, bool)>>,
    pub(super) operations: Mutex<Vec<Operation>>,
    pub(super) watches: Mutex<Vec<Watched>>,
    /// Objects as responses and events showed them first.
    objects: Mutex<HashMap<Shown, Value>>,
    violations: Mutex<Vec<String>>,
    /// Whether history was compacted before a recorder had it, as when the machine is very busy.
    pub(super) late: AtomicBool,
    newest: AtomicU64,
    acknowledged: AtomicU64,
}

impl History {
    pub(super) fn new(compacted: Option<Duration>) -> History {
        History { compacted, ..History::default() }
    }

    /// Notes an object. Every response and event must show the same content for a version.
    pub(super) fn see(&self, resource: Resource, form: Form, object: Value) -> Value {
        let version = version(&object);
        let object = form.part(object);
        self.see_version(version);
        let mut objects = self.objects.lock().unwrap();
        let shown = Shown { resource, version, is_whole: form.is_whole };
        let first = objects.entry(shown).or_insert_with(|| object.clone());
        if *first != object {
            self.violation(format!("{resource:?} at {version} has two contents:\n  {first}\n  {object}"));
        }
        object
    }

    pub(super) fn see_version(&self, version: u64) {
        self.newest.fetch_max(version, Ordering::AcqRel);
    }

    /// The newest version that was seen.
    pub(super) fn newest(&self) -> u64 {
        self.newest.load(Ordering::Acquire)
    }

    /// A version that was seen, lately or long ago, or 0.
    pub(super) fn past(&self, random: &mut Random) -> u64 {
        let back = match random.below(6) {
            0 | 1 => 0,
            2 => u64::MAX,
            _ => 1 << random.below(14),
        };
        self.newest().saturating_sub(back)
    }

    pub(super) fn add(&self, operation: Operation) {
        let is_write = operation.call.tag().is_some();
        if is_write && matches!(operation.answer, Answer::Object(_)) {
            self.acknowledged.fetch_add(1, Ordering::AcqRel);
        }
        self.operations.lock().unwrap().push(operation);
    }

    /// The number of writes that were acknowledged.
    pub(super) fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::Acquire)
    }

    pub(super) fn violation(&self, what: String) {
        self.violations.lock().unwrap().push(what);
    }

    pub(super) fn violations(&self) -> Vec<String> {
        self.violations.lock().unwrap().clone()
    }

    /// The objects that were seen.
    pub(super) fn objects(&self) -> HashMap<Shown, Value> {
        self.objects.lock().unwrap().clone()
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Operation { client, server, resource, call, answer, .. } = self;
        write!(f, "client {client}, server {server}: {resource:?} {call:?} -> {answer:?}")
    }
}

impl fmt::Display for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Watched { server, resource, selection, form, from, events, end, .. } = self;
        write!(
            f,
            "a watch of {resource:?} by server {server}, {selection:?}, {form:?}, {from:?}, end: {end}, events:"
        )?;
        for Event { kind, version, object, .. } in events {
            write!(f, " {version} {kind:?} {}", object["metadata"]["name"].as_str().unwrap_or_default())?;
        }
        Ok(())
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {} {}", self.kind, self.version, self.object)
    }
}
