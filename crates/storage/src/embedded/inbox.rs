//! The queue of calls to the commit thread.
//!
//! A mutex and a condition variable instead of a channel: the thread takes all commands at once, and a writer wakes
//! it only when it sleeps; while it syncs, writers only append their commands.
//!
//! Group commit window: writers that were answered together tend to write again together, within a moment of each
//! other. If the thread took the first write alone, the others would wait for a second sync; so it waits for them,
//! see [`Gathering`]. When there are many, it begins with half of them, and takes the rest when it has encoded those.

use super::write::Write;
use crate::StorageError;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Below this number of writers the thread waits for all: a second wake-up costs more than it saves.
const WORTH_HALVING: usize = 16;

pub(super) type Reply = oneshot::Sender<Result<(), StorageError>>;

/// A command for the commit thread.
pub(super) enum Command {
    Write(Write),
    /// Probe whether the disk accepts writes.
    Probe {
        reply: Reply,
    },
}

/// The commands that the commit thread took.
#[derive(Default)]
pub(super) struct Taken {
    pub(super) commands: Vec<Command>,
    /// No command follows.
    pub(super) closing: bool,
}

/// The group commit window: the writers that the commit thread waits for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gathering {
    /// The number of commands expected.
    pub(super) expected: usize,
    /// The end of the window.
    pub(super) until: Instant,
}

#[derive(Default)]
pub(super) struct Inbox {
    state: Mutex<State>,
    ready: Condvar,
}

#[derive(Default)]
struct State {
    commands: Vec<Command>,
    /// The callers that wait for the thread's end.
    closers: Vec<Reply>,
    closing: bool,
    /// The commit thread has ended.
    ended: bool,
    poisoned: Option<StorageError>,
    asleep: bool,
    /// The number of commands that wakes the thread.
    wanted: usize,
}

impl Inbox {
    /// Queues a command.
    ///
    /// # Errors
    /// [`StorageError::Closed`] or the poison error: the command is not queued.
    pub(super) fn push(&self, command: Command) -> Result<(), StorageError> {
        let mut state = self.state.lock();
        if state.closing {
            return Err(StorageError::Closed);
        }
        if let Some(error) = &state.poisoned {
            return Err(error.clone());
        }
        state.commands.push(command);
        if state.commands.len() >= state.wanted {
            self.wake(&mut state);
        }
        Ok(())
    }

    /// Refuses further commands. Returns whether the commit thread will answer `reply`; `false` when it has ended.
    pub(super) fn close(&self, reply: Option<Reply>) -> bool {
        let mut state = self.state.lock();
        state.closing = true;
        if !state.ended {
            state.closers.extend(reply);
            self.wake(&mut state);
        }
        !state.ended
    }

    fn wake(&self, state: &mut State) {
        if state.asleep {
            state.asleep = false;
            self.ready.notify_one();
        }
    }

    /// Refuses further commands with an error, and returns the commands that were not taken.
    pub(super) fn poison(&self, error: &StorageError) -> Vec<Command> {
        let mut state = self.state.lock();
        state.poisoned = Some(error.clone());
        std::mem::take(&mut state.commands)
    }

    /// Takes all commands. Returns without commands after `patience` (`None`: waits without a limit).
    pub(super) fn take(&self, patience: Option<Duration>, gathering: Option<Gathering>) -> Taken {
        let mut state = self.state.lock();
        if let Some(Gathering { expected, until }) = gathering {
            self.gather(&mut state, expected.div_ceil(2).max(expected.min(WORTH_HALVING)), until);
        }
        if state.commands.is_empty() && !state.closing {
            state.asleep = true;
            match patience {
                None => self.ready.wait_while(&mut state, |state| state.asleep),
                Some(patience) => {
                    self.ready.wait_while_for(&mut state, |state| state.asleep, patience);
                }
            }
            state.asleep = false;
        }
        Taken { commands: std::mem::take(&mut state.commands), closing: state.closing }
    }

    /// Takes the commands that arrived while the commit thread handled `taken` ones, and waits for the rest of the
    /// group commit window. Takes commands, in order, as long as `fits` returns true.
    pub(super) fn take_late(
        &self,
        taken: usize,
        gathering: Option<Gathering>,
        fits: impl FnMut(&&Command) -> bool,
    ) -> Vec<Command> {
        let mut state = self.state.lock();
        if let Some(Gathering { expected, until }) = gathering {
            self.gather(&mut state, expected.saturating_sub(taken), until);
        }
        let count = state.commands.iter().take_while(fits).count();
        state.commands.drain(..count).collect()
    }

    /// Waits until there are `expected` commands, or until the end of the window.
    fn gather(&self, state: &mut MutexGuard<'_, State>, expected: usize, until: Instant) {
        if state.commands.len() < expected && !state.closing {
            state.asleep = true;
            state.wanted = expected;
            self.ready.wait_while_until(state, |state| state.asleep, until);
            state.asleep = false;
        }
        state.wanted = 1;
    }

    /// Marks the commit thread as ended, and returns the callers that wait for that; later callers do not wait.
    pub(super) fn end(&self) -> Vec<Reply> {
        let mut state = self.state.lock();
        state.ended = true;
        state.commands.clear();
        std::mem::take(&mut state.closers)
    }
}
