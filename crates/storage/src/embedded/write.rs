//! A waiting write, and the answer to its writer.

use super::value::StoredValue;
use crate::{Key, Payload, Revision, WriteError};
use bytes::Bytes;
use std::{sync::Arc, time::Duration};
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    sync::{OwnedSemaphorePermit, oneshot},
};

/// A waiting write.
pub(super) struct Write {
    pub(super) key: Key,
    pub(super) kind: WriteKind,
    /// The stored form of its value.
    pub(super) stored: StoredValue,
    /// The writer's channel, and its place in the inbox; `None` when the engine itself deletes an expired key.
    pub(super) reply: Option<(oneshot::Sender<Outcome>, OwnedSemaphorePermit)>,
    /// The writer's [`current_runtime`].
    pub(super) runtime: Option<Handle>,
}

pub(super) type Outcome = Result<Revision, WriteError>;

pub(super) enum WriteKind {
    Create {
        value: Payload,
        ttl: Option<Duration>,
    },
    Update {
        value: Payload,
        expected: Revision,
        ttl: Option<Duration>,
    },
    /// `existing` is the value at `expected`, if the caller has it.
    Delete {
        expected: Revision,
        existing: Option<Payload>,
    },
}

impl WriteKind {
    /// The bytes to write.
    pub(super) fn value(&self) -> Option<&Bytes> {
        match self {
            WriteKind::Create { value, .. } | WriteKind::Update { value, .. } => Some(value.stored_form()),
            WriteKind::Delete { .. } => None,
        }
    }

    /// Keeps the compressed form for readers of the write's event, where it is that of the value itself.
    pub(super) fn set_packed(&mut self, stored: &StoredValue) {
        if let WriteKind::Create { value, .. } | WriteKind::Update { value, .. } = self
            && value.stored.is_none()
        {
            value.packed = stored.packed().map(Arc::new);
        }
    }
}

impl Write {
    /// The bytes it takes in the journal: key and stored value.
    pub(super) fn size(&self) -> usize {
        self.key.as_str().len() + self.stored.bytes().len()
    }

    pub(super) fn answer(self, outcome: Outcome) {
        if let Some((reply, _)) = self.reply {
            // The writer may have been dropped; the write is kept.
            let _ = reply.send(outcome);
        }
    }
}

/// The runtime of the calling task, if it has worker threads: a current-thread runtime may not be running when its
/// task is woken.
pub(super) fn current_runtime() -> Option<Handle> {
    Handle::try_current().ok().filter(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread)
}

/// Sends the outcomes to the writers.
///
/// Waking a task of the runtime from another thread takes a system call, which is a large part of the total cost: so
/// only one new task is woken, and it wakes the writers from inside the runtime.
pub(super) fn answer(writes: Vec<Write>, outcomes: Vec<Outcome>) {
    let answers = Answers(writes.into_iter().zip(outcomes).collect());
    let runtime = answers.0.iter().find_map(|(write, _)| write.runtime.clone());
    if let Some(runtime) = runtime.filter(|_| answers.0.len() > 1) {
        // A runtime that has shut down drops the task at once.
        runtime.spawn(async move { drop(answers) });
    }
}

/// Outcomes that are sent to their writers on drop, on whichever thread that happens.
struct Answers(Vec<(Write, Outcome)>);

impl Drop for Answers {
    fn drop(&mut self) {
        for (write, outcome) in self.0.drain(..) {
            write.answer(outcome);
        }
    }
}
