//! The threads that poll large requests.

use crate::turns::Turns;
use parking_lot::{Condvar, Mutex};
use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::Pin,
    sync::{
        Arc, LazyLock, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    thread::{self, available_parallelism},
    time::Duration,
};
use tokio::{
    runtime::Handle,
    sync::{Notify, oneshot},
};

/// How long a thread waits for work before it runs the [`when_idle`] action.
const IDLE_AFTER: Duration = Duration::from_millis(50);

type Task = Box<dyn FnOnce() + Send>;
type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The action of a thread that becomes idle.
static WHEN_IDLE: OnceLock<fn()> = OnceLock::new();

static THREADS: LazyLock<Vec<Thread>> = LazyLock::new(|| {
    let count = available_parallelism().map_or(2, usize::from).max(2);
    (0..count).filter_map(Thread::start).collect()
});

/// Sets the action that each thread runs when it has been idle for a moment after work, such as returning free memory
/// that the allocator keeps per thread. Only the first call has an effect.
pub fn when_idle(act: fn()) {
    // A later call is ignored.
    let _ = WHEN_IDLE.set(act);
}

struct Thread {
    inbox: Arc<Inbox>,
    /// The number of requests assigned to the thread.
    requests: AtomicUsize,
}

/// The waiting tasks of a thread.
struct Inbox {
    tasks: Mutex<Turns<Task>>,
    filled: Condvar,
}

impl Inbox {
    fn give(&self, party: u64, task: Task) {
        self.tasks.lock().push(party, task);
        self.filled.notify_one();
    }

    /// Waits for a task.
    #[expect(clippy::disallowed_methods, reason = "it is no thread of the runtime")]
    fn take(&self) -> Task {
        let mut tasks = self.tasks.lock();
        loop {
            match tasks.pop() {
                Some(task) => return task,
                None => self.filled.wait(&mut tasks),
            }
        }
    }

    /// Waits for a task for a moment.
    fn take_soon(&self) -> Option<Task> {
        let mut tasks = self.tasks.lock();
        let _ = self.filled.wait_while_for(&mut tasks, |tasks| tasks.is_empty(), IDLE_AFTER);
        tasks.pop()
    }
}

impl Thread {
    fn start(number: usize) -> Option<Thread> {
        let inbox = Arc::new(Inbox { tasks: Mutex::new(Turns::new()), filled: Condvar::new() });
        let served = inbox.clone();
        let started = thread::Builder::new().name(format!("large-{number}")).spawn(move || serve(&served));
        match started {
            Ok(_) => Some(Thread { inbox, requests: AtomicUsize::new(0) }),
            Err(error) => {
                tracing::error!(%error, "starting a thread for large requests");
                None
            }
        }
    }
}

fn serve(inbox: &Inbox) -> ! {
    loop {
        carry_out(inbox.take());
        while let Some(task) = inbox.take_soon() {
            carry_out(task);
        }
        if let Some(act) = WHEN_IDLE.get() {
            act();
        }
    }
}

/// Runs a task. A panic ends the task and not the thread, also a panic in the destructor of abandoned work.
fn carry_out(task: Task) {
    // The panic hook has logged it, and the waiting request gets it as its result.
    let _ = catch_unwind(AssertUnwindSafe(task));
}

/// Polls work of a party on the thread with the fewest requests until it is ready. Dropping this future drops the work on that
/// thread.
///
/// # Panics
/// When the work panics.
pub(super) async fn run<T: Send + 'static>(party: u64, work: Work<T>) -> T {
    let Some(thread) = THREADS.iter().min_by_key(|thread| thread.requests.load(Ordering::Relaxed)) else {
        return work.await;
    };
    thread.requests.fetch_add(1, Ordering::Relaxed);
    let mut request = Request { thread, party, runtime: Handle::current(), work: Some(work) };
    let bell = Arc::new(Bell(Notify::new()));
    while let Some(work) = request.work.take() {
        match thread.poll(party, work, request.runtime.clone(), Waker::from(bell.clone())).await {
            Polled::Done(output) => return output,
            Polled::Panicked(panic) => resume_unwind(panic),
            Polled::Waits(work) => {
                request.work = Some(work);
                bell.0.notified().await;
            }
        }
    }
    unreachable!("the work is taken to be polled, and comes back unless it is done")
}

/// A request's work on its thread.
struct Request<T: Send + 'static> {
    thread: &'static Thread,
    party: u64,
    /// The runtime of its timers and tasks.
    runtime: Handle,
    /// `None` while the thread polls it.
    work: Option<Work<T>>,
}

enum Polled<T> {
    Done(T),
    Waits(Work<T>),
    Panicked(Box<dyn Any + Send>),
}

impl Thread {
    /// Polls the work once.
    async fn poll<T: Send + 'static>(
        &self,
        party: u64,
        mut work: Work<T>,
        runtime: Handle,
        waker: Waker,
    ) -> Polled<T> {
        let (answer, polled) = oneshot::channel();
        let of_answer = runtime.clone();
        let step = Box::new(move || {
            let _entered = runtime.enter();
            if answer.is_closed() {
                // Nobody waits for it any more.
                return;
            }
            let step = AssertUnwindSafe(|| match work.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(output) => {
                    drop(work);
                    Polled::Done(output)
                }
                Poll::Pending => Polled::Waits(work),
            });
            // If the receiver is gone, the work is dropped here.
            let _ = answer.send(catch_unwind(step).unwrap_or_else(Polled::Panicked));
        });
        self.inbox.give(party, step);
        let mut answer = Answer { thread: self, party, runtime: of_answer, polled };
        (&mut answer.polled).await.unwrap_or_else(|gone| Polled::Panicked(Box::new(gone)))
    }

    /// Drops a value there: it may be large, and its destructors may panic.
    fn drop_there(&self, party: u64, value: impl Send + 'static, runtime: Handle) {
        let step = move || {
            let _entered = runtime.enter();
            drop(value);
        };
        self.inbox.give(party, Box::new(step));
    }
}

impl<T: Send + 'static> Drop for Request<T> {
    fn drop(&mut self) {
        self.thread.requests.fetch_sub(1, Ordering::Relaxed);
        if let Some(work) = self.work.take() {
            self.thread.drop_there(self.party, work, self.runtime.clone());
        }
    }
}

/// The result of polling work, while a request waits for it. A result that arrives too late is dropped on the work's
/// thread.
struct Answer<'thread, T: Send + 'static> {
    thread: &'thread Thread,
    party: u64,
    runtime: Handle,
    polled: oneshot::Receiver<Polled<T>>,
}

impl<T: Send + 'static> Drop for Answer<'_, T> {
    fn drop(&mut self) {
        self.polled.close();
        // It came, and nobody waits for it any more.
        if let Ok(polled) = self.polled.try_recv() {
            self.thread.drop_there(self.party, polled, self.runtime.clone());
        }
    }
}

/// Wakes the request's future; a wake-up before it waits is not lost.
struct Bell(Notify);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.notify_one();
    }
}

/// The number of requests that are assigned to the threads.
#[cfg(test)]
pub(super) fn assigned() -> usize {
    THREADS.iter().map(|thread| thread.requests.load(Ordering::Relaxed)).sum()
}
