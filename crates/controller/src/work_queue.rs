//! A controller's work queue: a name is queued once, and is retried with back-off after a failure.

use crate::{queue_observer::Observer, rate_limiter::ItemExponentialFailureRateLimiter};
use parking_lot::Mutex;
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap, HashSet, VecDeque},
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::{sync::Notify, time::Instant};

/// A work queue of names, which [`WorkQueue::process`] processes. No name is processed by two workers at a time.
#[derive(Default)]
pub struct WorkQueue {
    state: Mutex<State>,
    changed: Notify,
    observer: OnceLock<Arc<dyn Observer>>,
}

#[derive(Default)]
struct State {
    ready: VecDeque<String>,
    queued: HashSet<String>,
    /// Names in work; a name that is added meanwhile waits until its work is done.
    active: HashSet<String>,
    later: Delayed,
    failures: ItemExponentialFailureRateLimiter,
}

/// Names that wait for their time, each once.
#[derive(Default)]
struct Delayed {
    /// The earliest first. An entry whose time is not that of its name is void.
    by_time: BinaryHeap<Reverse<(Instant, String)>>,
    due: HashMap<String, Instant>,
}

impl Delayed {
    /// Adds a name; one that waits already is due at the earlier of both times.
    fn add(&mut self, name: String, at: Instant) {
        match self.due.get_mut(&name) {
            Some(due) if *due <= at => return,
            Some(due) => *due = at,
            None => drop(self.due.insert(name.clone(), at)),
        }
        self.by_time.push(Reverse((at, name)));
    }

    /// Removes a name that is due.
    fn pop(&mut self, now: Instant) -> Option<String> {
        self.next()?.le(&now).then_some(())?;
        let Reverse((_, name)) = self.by_time.pop()?;
        self.due.remove(&name);
        Some(name)
    }

    /// The time at which the next name is due.
    fn next(&mut self) -> Option<Instant> {
        loop {
            let Reverse((at, name)) = self.by_time.peek()?;
            if self.due.get(name) == Some(at) {
                return Some(*at);
            }
            self.by_time.pop();
        }
    }
}

impl WorkQueue {
    /// Reports what happens to names from now on; a second observer is left out.
    pub(crate) fn observe(&self, observer: Arc<dyn Observer>) {
        drop(self.observer.set(observer));
    }

    /// Adds a name, unless it is queued already. A name in work is queued again afterwards.
    pub fn add(&self, name: String) {
        {
            let mut state = self.state.lock();
            if !state.queued.insert(name.clone()) {
                return;
            }
            self.added(&name, state.ready.len() + 1);
            state.ready.push_back(name);
        }
        self.changed.notify_one();
    }

    /// Adds a name after a delay. A name that waits already is queued at the earlier of both times.
    pub fn add_after(&self, name: String, delay: Duration) {
        let at = Instant::now() + delay;
        self.state.lock().later.add(name, at);
        self.changed.notify_one();
    }

    fn added(&self, name: &str, depth: usize) {
        if let Some(observer) = self.observer.get() {
            observer.added(name, depth);
        }
    }

    fn done(&self, name: &str, is_retried: bool) {
        if let Some(observer) = self.observer.get() {
            observer.done(name, is_retried);
        }
    }

    /// Queues the names of workers that died again, with back-off. No worker may run.
    pub(crate) fn recover(&self) {
        let active: Vec<String> = self.state.lock().active.iter().cloned().collect();
        for name in active {
            self.failed(&name);
        }
    }

    /// Waits for the next name. The worker calls [`WorkQueue::succeeded`] or [`WorkQueue::failed`] afterwards.
    pub(crate) async fn next(&self) -> String {
        loop {
            let due = {
                let mut state = self.state.lock();
                let now = Instant::now();
                while let Some(name) = state.later.pop(now) {
                    if state.queued.insert(name.clone()) {
                        self.added(&name, state.ready.len() + 1);
                        state.ready.push_back(name);
                    }
                }
                let free = state.ready.iter().position(|name| !state.active.contains(name));
                if let Some(name) = free.and_then(|at| state.ready.remove(at)) {
                    state.queued.remove(&name);
                    state.active.insert(name.clone());
                    if let Some(observer) = self.observer.get() {
                        observer.begun(&name, state.ready.len());
                    }
                    return name;
                }
                state.later.next()
            };
            match due {
                None => self.changed.notified().await,
                Some(due) => tokio::select! {
                    () = self.changed.notified() => {}
                    () = tokio::time::sleep_until(due) => {}
                },
            }
        }
    }

    /// Marks the work on a name as done, and resets its back-off.
    pub(crate) fn succeeded(&self, name: &str) {
        self.done(name, false);
        {
            let mut state = self.state.lock();
            state.failures.forget(name);
            state.active.remove(name);
        }
        // The name may have been added meanwhile.
        self.changed.notify_one();
    }

    /// Marks the work on a name as failed, and queues it again with exponential back-off.
    pub(crate) fn failed(&self, name: &str) {
        self.done(name, true);
        {
            let mut state = self.state.lock();
            state.active.remove(name);
            let delay = state.failures.delay(name);
            state.later.add(name.to_owned(), Instant::now() + delay);
        }
        self.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        pin::pin,
        sync::atomic::{AtomicBool, AtomicU64, Ordering},
        task::Poll,
    };

    /// The next name, if there is one now.
    async fn now(queue: &WorkQueue) -> Option<String> {
        let mut next = pin!(queue.next());
        std::future::poll_fn(|context| {
            Poll::Ready(match next.as_mut().poll(context) {
                Poll::Ready(name) => Some(name),
                Poll::Pending => None,
            })
        })
        .await
    }

    #[tokio::test(start_paused = true)]
    async fn a_delayed_name_waits_once_until_the_earliest_time() {
        let queue = WorkQueue::default();
        for seconds in [60, 5, 30] {
            queue.add_after("a".to_owned(), Duration::from_secs(seconds));
        }
        assert_eq!(now(&queue).await, None);
        let begin = Instant::now();
        assert_eq!(queue.next().await, "a");
        assert_eq!(begin.elapsed(), Duration::from_secs(5));
        queue.succeeded("a");
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(now(&queue).await, None);
    }

    #[test]
    fn delayed_names_come_in_the_order_of_their_times() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut delayed = Delayed::default();
        for (name, seconds) in [("a", 3), ("b", 1), ("c", 2), ("b", 9), ("a", 0), ("c", 2)] {
            delayed.add(name.to_owned(), at(seconds));
        }
        assert_eq!(delayed.next(), Some(at(0)));
        assert_eq!([delayed.pop(at(0)).as_deref(), delayed.pop(at(0)).as_deref()], [Some("a"), None]);
        assert_eq!(delayed.next(), Some(at(1)));
        let rest: Vec<_> = std::iter::from_fn(|| delayed.pop(at(100))).collect();
        assert_eq!(rest, ["b", "c"]);
        assert_eq!((delayed.next(), delayed.by_time.len(), delayed.due.len()), (None, 0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_is_in_the_queue_once_and_worked_on_by_one() {
        let queue = WorkQueue::default();
        for name in ["a", "b", "a"] {
            queue.add(name.to_owned());
        }
        assert_eq!(now(&queue).await.as_deref(), Some("a"));
        // A name that is added during its work is queued again afterwards.
        queue.add("a".to_owned());
        assert_eq!(now(&queue).await.as_deref(), Some("b"));
        assert_eq!(now(&queue).await, None);
        queue.succeeded("a");
        assert_eq!(now(&queue).await.as_deref(), Some("a"));
        queue.succeeded("a");
        assert_eq!(now(&queue).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_fails_comes_again_later_and_later() {
        let queue = WorkQueue::default();
        queue.add("a".to_owned());
        assert_eq!(queue.next().await, "a");
        for delay in [5, 10, 20, 40] {
            let failed = Instant::now();
            queue.failed("a");
            assert_eq!(now(&queue).await, None);
            assert_eq!(queue.next().await, "a");
            // Tokio's clock counts whole milliseconds.
            assert!((delay..=delay + 1).contains(&failed.elapsed().as_millis()), "{:?}", failed.elapsed());
        }
        queue.succeeded("a");
        queue.add("a".to_owned());
        assert_eq!(queue.next().await, "a");
        let failed = Instant::now();
        queue.failed("a");
        assert_eq!(queue.next().await, "a");
        assert!(failed.elapsed().as_millis() <= 6, "a success resets the back-off");
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_dead_worker_had_comes_again() {
        let queue = WorkQueue::default();
        queue.add("a".to_owned());
        assert_eq!(queue.next().await, "a");
        queue.add("a".to_owned());
        assert_eq!(now(&queue).await, None, "somebody works on it");
        queue.recover();
        assert_eq!(queue.next().await, "a");
    }

    /// Names are added on several threads while several workers process them.
    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn workers_share_the_names_and_process_each_addition() {
        const NAMES: usize = 3;
        const WORKERS: usize = 6;
        const ADDITIONS: u64 = 2_000;
        #[derive(Default)]
        struct Work {
            queue: WorkQueue,
            wanted: [AtomicU64; NAMES],
            reached: [AtomicU64; NAMES],
            in_work: [AtomicBool; NAMES],
        }
        let work = Arc::new(Work::default());
        let workers: Vec<_> = (0..WORKERS)
            .map(|_| {
                let work = Arc::clone(&work);
                tokio::spawn(async move {
                    for round in 0_u64.. {
                        let name = work.queue.next().await;
                        let index: usize = name.parse().unwrap();
                        let before = work.in_work[index].swap(true, Ordering::AcqRel);
                        assert!(!before, "two workers have {name}");
                        let wanted = work.wanted[index].load(Ordering::Acquire);
                        tokio::task::yield_now().await;
                        work.reached[index].fetch_max(wanted, Ordering::AcqRel);
                        work.in_work[index].store(false, Ordering::Release);
                        // Some attempts fail, and come again.
                        if round % 7 == 0 { work.queue.failed(&name) } else { work.queue.succeeded(&name) }
                    }
                })
            })
            .collect();
        let adding: Vec<_> = (0..NAMES)
            .map(|index| {
                let work = Arc::clone(&work);
                tokio::spawn(async move {
                    for _ in 0..ADDITIONS {
                        work.wanted[index].fetch_add(1, Ordering::AcqRel);
                        work.queue.add(index.to_string());
                        tokio::task::yield_now().await;
                    }
                })
            })
            .collect();
        for added in adding {
            added.await.unwrap();
        }
        let is_done = || work.reached.iter().all(|reached| reached.load(Ordering::Acquire) == ADDITIONS);
        let reached = async {
            while !is_done() && workers.iter().all(|worker| !worker.is_finished()) {
                tokio::task::yield_now().await;
            }
        };
        drop(tokio::time::timeout(Duration::from_secs(30), reached).await);
        for worker in workers {
            worker.abort();
            let ended = worker.await.unwrap_err();
            assert!(ended.is_cancelled(), "{ended}");
        }
        assert!(is_done(), "{:?}: the last addition of a name was not processed", work.reached);
    }
}
