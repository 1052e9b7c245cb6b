//! The threads that poll large requests.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::Pin,
    sync::{
        Arc, LazyLock, OnceLock,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
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
    tasks: Sender<Task>,
    /// The number of requests assigned to the thread.
    requests: AtomicUsize,
}

impl Thread {
    fn start(number: usize) -> Option<Thread> {
        let (tasks, received) = mpsc::channel();
        let started = thread::Builder::new().name(format!("large-{number}")).spawn(move || serve(&received));
        match started {
            Ok(_) => Some(Thread { tasks, requests: AtomicUsize::new(0) }),
            Err(error) => {
                tracing::error!(%error, "starting a thread for large requests");
                None
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "it is no thread of the runtime")]
fn serve(tasks: &Receiver<Task>) {
    while let Ok(task) = tasks.recv() {
        carry_out(task);
        loop {
            match tasks.recv_timeout(IDLE_AFTER) {
                Ok(task) => carry_out(task),
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => break,
            }
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

/// Polls work on the thread with the fewest requests until it is ready. Dropping this future drops the work on that
/// thread.
///
/// # Panics
/// When the work panics.
pub(super) async fn run<T: Send + 'static>(work: Work<T>) -> T {
    let Some(thread) = THREADS.iter().min_by_key(|thread| thread.requests.load(Ordering::Relaxed)) else {
        return work.await;
    };
    thread.requests.fetch_add(1, Ordering::Relaxed);
    let mut request = Request { thread, runtime: Handle::current(), work: Some(work) };
    let bell = Arc::new(Bell(Notify::new()));
    while let Some(work) = request.work.take() {
        match thread.poll(work, request.runtime.clone(), Waker::from(bell.clone())).await {
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
    async fn poll<T: Send + 'static>(&self, mut work: Work<T>, runtime: Handle, waker: Waker) -> Polled<T> {
        let (answer, polled) = oneshot::channel();
        let of_answer = runtime.clone();
        self.give(Box::new(move || {
            let _entered = runtime.enter();
            let step = AssertUnwindSafe(|| match work.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(output) => {
                    drop(work);
                    Polled::Done(output)
                }
                Poll::Pending => Polled::Waits(work),
            });
            // If the receiver is gone, the work is dropped here.
            let _ = answer.send(catch_unwind(step).unwrap_or_else(Polled::Panicked));
        }));
        let mut answer = Answer { thread: self, runtime: of_answer, polled };
        (&mut answer.polled).await.unwrap_or_else(|gone| Polled::Panicked(Box::new(gone)))
    }

    /// Drops a value there: it may be large, and its destructors may panic.
    fn drop_there(&self, value: impl Send + 'static, runtime: Handle) {
        self.give(Box::new(move || {
            let _entered = runtime.enter();
            drop(value);
        }));
    }

    fn give(&self, task: Task) {
        // The threads run as long as the process.
        let _ = self.tasks.send(task);
    }
}

impl<T: Send + 'static> Drop for Request<T> {
    fn drop(&mut self) {
        self.thread.requests.fetch_sub(1, Ordering::Relaxed);
        if let Some(work) = self.work.take() {
            self.thread.drop_there(work, self.runtime.clone());
        }
    }
}

/// The result of polling work, while a request waits for it. A result that arrives too late is dropped on the work's
/// thread.
struct Answer<'thread, T: Send + 'static> {
    thread: &'thread Thread,
    runtime: Handle,
    polled: oneshot::Receiver<Polled<T>>,
}

impl<T: Send + 'static> Drop for Answer<'_, T> {
    fn drop(&mut self) {
        self.polled.close();
        // It came, and nobody waits for it any more.
        if let Ok(polled) = self.polled.try_recv() {
            self.thread.drop_there(polled, self.runtime.clone());
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
