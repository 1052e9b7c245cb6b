//! Where calls wait for the commit thread.
//!
//! A mutex and a condition rather than a channel, since the thread takes everything at once, and a writer need wake it
//! only when it sleeps: while it syncs, writers just leave their writes.
//!
//! Writers who have just been answered together tend to come back together, a moment after the first of them. A thread
//! that took the first one's write alone would make all the others wait for a sync of their own, so it waits for them:
//! [`Gathering`]. When they are many, it begins with half of them, and takes the rest when it has made rows of those.

use super::batch::Write;
use crate::StorageError;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Fewer are waited for all at once: being woken twice costs more than it saves.
const WORTH_HALVING: usize = 16;

pub(super) type Reply = oneshot::Sender<Result<(), StorageError>>;

/// What callers ask of the commit thread.
pub(super) enum Command {
    Write(Write),
    /// Try whether the disk takes writes.
    Probe {
        reply: Reply,
    },
}

/// What the commit thread takes.
#[derive(Default)]
pub(super) struct Taken {
    pub(super) commands: Vec<Command>,
    /// No command follows.
    pub(super) closing: bool,
}

/// For whom the commit thread waits once the first command is there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gathering {
    /// So many commands are to come.
    pub(super) expected: usize,
    /// So late it is not worth the wait any more.
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
    /// Who waits for the end.
    closers: Vec<Reply>,
    closing: bool,
    /// The commit thread is gone.
    ended: bool,
    poisoned: Option<StorageError>,
    asleep: bool,
    /// So many commands wake the sleeper.
    wanted: usize,
}

impl Inbox {
    /// Leaves a command; an error says that it will not be looked at.
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

    /// Refuses what comes from now on. Whether there is still somebody to answer `reply`.
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

    /// Refuses further commands with an error, and returns those that nobody has looked at.
    pub(super) fn poison(&self, error: &StorageError) -> Vec<Command> {
        let mut state = self.state.lock();
        state.poisoned = Some(error.clone());
        std::mem::take(&mut state.commands)
    }

    /// Everything that waits, after at most `patience` if nothing does (`None`: however long it takes).
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

    /// What has come while the commit thread was busy with `taken` commands, and if it is gathering, the rest of those
    /// it waits for: as many as `fits` says yes to, one after the other.
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

    /// Waits until there are so many commands, or it is too late.
    fn gather(&self, state: &mut MutexGuard<'_, State>, expected: usize, until: Instant) {
        if state.commands.len() < expected && !state.closing {
            state.asleep = true;
            state.wanted = expected;
            self.ready.wait_while_until(state, |state| state.asleep, until);
            state.asleep = false;
        }
        state.wanted = 1;
    }

    /// The commit thread ends: whoever waits for that is returned, whoever comes later need not wait.
    pub(super) fn end(&self) -> Vec<Reply> {
        let mut state = self.state.lock();
        state.ended = true;
        state.commands.clear();
        std::mem::take(&mut state.closers)
    }
}
