//! Runs a server's background tasks and reports those that panic.
//!
//! A task that dies silently leaves a server that looks healthy and is not: role changes that have no effect, a cache
//! that no task fills. So each part of a server is spawned here. A part that can start again is restarted after a
//! panic; a part that cannot stays dead. [`Supervisor::dead`] reports dead parts to the server's health checks.
//!
//! A task that returns, or that is aborted, has ended as intended. Deliberately absent: time limits. A part that
//! hangs is detected by the checks of its function.

mod in_turns;

pub use in_turns::in_turns;

use futures_util::FutureExt;
use parking_lot::Mutex;
use std::{any::Any, collections::BTreeMap, panic::AssertUnwindSafe, pin::pin, sync::Arc, time::Duration};
use tokio::{runtime::Handle, task::JoinHandle, time::sleep};

/// The delay before a part is restarted after its first panic; each further panic doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest delay before a part is restarted.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// The time that a restarted part has to run before it counts as alive.
const STEADY: Duration = Duration::from_secs(10);

/// Spawns tasks and records which parts are dead. Clones share both.
#[derive(Debug, Clone)]
pub struct Supervisor {
    runtime: Handle,
    /// The number of dead tasks of each part.
    dead: Arc<Mutex<BTreeMap<Arc<str>, usize>>>,
}

impl Supervisor {
    /// A supervisor of tasks on this runtime.
    pub fn new(runtime: Handle) -> Supervisor {
        Supervisor { runtime, dead: Arc::default() }
    }

    /// A supervisor of tasks on the caller's runtime.
    ///
    /// # Panics
    /// Outside of a runtime, as [`Handle::current`] does.
    pub fn current() -> Supervisor {
        Supervisor::new(Handle::current())
    }

    /// Runs a task that cannot be restarted. If it panics, its part stays dead.
    pub fn spawn(
        &self,
        part: impl Into<Arc<str>>,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> JoinHandle<()> {
        let (part, supervisor) = (part.into(), self.clone());
        self.runtime.spawn(async move {
            if let Err(panic) = AssertUnwindSafe(task).catch_unwind().await {
                tracing::error!(part = &*part, why = message(&*panic), "a part of the server died");
                supervisor.mark(&part, true);
            }
        })
    }

    /// Runs the tasks that `make` returns, one after the other: a new one after each panic. Each task must start from
    /// its own state, since the previous one may have left shared state incomplete.
    ///
    /// After a panic the part is dead until the next task has run for ten seconds.
    pub fn spawn_restarting<F: Future<Output = ()> + Send + 'static>(
        &self,
        part: impl Into<Arc<str>>,
        mut make: impl FnMut() -> F + Send + 'static,
    ) -> JoinHandle<()> {
        let (part, supervisor) = (part.into(), self.clone());
        self.runtime.spawn(async move {
            let mut pause = FIRST_PAUSE;
            // A task that ends or is aborted, also while its part is dead, has ended as intended.
            let mut dead: Option<Dead> = None;
            loop {
                let mut task = pin!(AssertUnwindSafe(async { make().await }).catch_unwind());
                let ended = tokio::select! {
                    ended = &mut task => ended,
                    () = sleep(STEADY), if dead.is_some() => {
                        (dead, pause) = (None, FIRST_PAUSE);
                        task.await
                    }
                };
                let Err(panic) = ended else { break };
                tracing::error!(
                    part = &*part,
                    why = message(&*panic),
                    "a part of the server died; restarting it"
                );
                dead.get_or_insert_with(|| Dead::new(&supervisor, &part));
                sleep(pause).await;
                pause = LONGEST_PAUSE.min(pause * 2);
            }
        })
    }

    /// The dead parts, sorted.
    pub fn dead(&self) -> Vec<Arc<str>> {
        self.dead.lock().keys().cloned().collect()
    }

    fn mark(&self, part: &Arc<str>, is_dead: bool) {
        let mut dead = self.dead.lock();
        let count = dead.entry(part.clone()).or_default();
        *count = if is_dead { *count + 1 } else { count.saturating_sub(1) };
        if *count == 0 {
            dead.remove(part);
        }
    }
}

/// Marks a part as dead until it is dropped.
struct Dead {
    supervisor: Supervisor,
    part: Arc<str>,
}

impl Dead {
    fn new(supervisor: &Supervisor, part: &Arc<str>) -> Dead {
        supervisor.mark(part, true);
        Dead { supervisor: supervisor.clone(), part: part.clone() }
    }
}

impl Drop for Dead {
    fn drop(&mut self) {
        self.supervisor.mark(&self.part, false);
    }
}

/// The message of a panic.
fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("panicked")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::{sync::watch, time::Instant};

    fn names(supervisor: &Supervisor) -> Vec<String> {
        supervisor.dead().iter().map(|part| part.to_string()).collect()
    }

    #[tokio::test]
    async fn a_part_that_panics_stays_dead_and_one_that_ends_is_not() {
        let supervisor = Supervisor::current();
        supervisor.spawn("ends", async {}).await.unwrap();
        let aborted = supervisor.spawn("aborted", std::future::pending());
        aborted.abort();
        assert!(aborted.await.unwrap_err().is_cancelled());
        assert!(names(&supervisor).is_empty());
        supervisor.spawn("panics", async { panic!("as asked") }).await.unwrap();
        assert_eq!(names(&supervisor), ["panics"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_part_that_can_begin_anew_is_restarted_and_alive_again_after_a_while() {
        let supervisor = Supervisor::current();
        let started = Arc::new(AtomicUsize::new(0));
        let (running, mut is_running) = watch::channel(0);
        let count = started.clone();
        let task = supervisor.spawn_restarting("part", move || {
            let (nth, running) = (count.fetch_add(1, Ordering::Relaxed), running.clone());
            async move {
                assert!(nth >= 3, "not yet");
                running.send_replace(nth);
                std::future::pending().await
            }
        });
        let begin = Instant::now();
        is_running.wait_for(|nth| *nth == 3).await.unwrap();
        assert_eq!(begin.elapsed().as_millis(), 100 + 200 + 400, "each pause is twice the one before it");
        assert_eq!(names(&supervisor), ["part"], "it has not proved itself yet");
        sleep(STEADY + Duration::from_millis(1)).await;
        assert!(names(&supervisor).is_empty());
        assert_eq!(started.load(Ordering::Relaxed), 4);
        task.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn a_dead_part_that_is_aborted_is_not_dead_any_more() {
        let supervisor = Supervisor::current();
        // One panics before it has a task, the other in it.
        let early = supervisor.spawn_restarting("early", || -> std::future::Ready<()> { panic!("as asked") });
        let late = supervisor.spawn_restarting("late", || async { panic!("as asked") });
        sleep(FIRST_PAUSE / 2).await;
        assert_eq!(names(&supervisor), ["early", "late"]);
        for task in [early, late] {
            task.abort();
            assert!(task.await.unwrap_err().is_cancelled());
        }
        assert!(names(&supervisor).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn tasks_of_one_part_count_for_themselves() {
        let supervisor = Supervisor::current();
        supervisor.spawn("part", async { panic!("as asked") }).await.unwrap();
        let mut panicked = false;
        let make = move || {
            let panics = !std::mem::replace(&mut panicked, true);
            async move { assert!(!panics, "as asked") }
        };
        supervisor.spawn_restarting("part", make).await.unwrap();
        assert_eq!(names(&supervisor), ["part"], "the other task is still dead");
    }
}
