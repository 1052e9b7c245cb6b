//! Keeps the work of large requests off the runtime's workers.
//!
//! What a request computes is bounded by the size of what it sends and reads. Small requests run where they are. A
//! request that turns out to handle more than [`LIGHT`] bytes says so with [`weigh`]; from then on each poll of it
//! inside [`scope`] runs beside the workers, and no more polls at a time than the machine has cores. So a worker is
//! always there for others, and the kernel shares the cores between them and the large requests.

use std::{cell::Cell, future::poll_fn, pin::pin, sync::LazyLock, task::Poll, thread::available_parallelism};
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    sync::Semaphore,
    task_local,
};

/// How many bytes are handled on a worker: a millisecond's work at most.
pub const LIGHT: usize = 64 * 1024;

task_local! {
    /// Whether the request handles more than [`LIGHT`] bytes.
    static HEAVY: Cell<bool>;
}

/// One for each poll of a large request.
static TURNS: LazyLock<Semaphore> =
    LazyLock::new(|| Semaphore::new(available_parallelism().map_or(2, usize::from).max(2)));

/// Runs the work of a request, beside the workers as soon as it calls [`weigh`] with more than [`LIGHT`] bytes.
pub async fn scope<F: Future>(work: F) -> F::Output {
    HEAVY.scope(Cell::new(false), run(work)).await
}

async fn run<F: Future>(work: F) -> F::Output {
    let mut work = pin!(work);
    let light = poll_fn(|context| match HEAVY.with(Cell::get) {
        false => work.as_mut().poll(context).map(Some),
        true => Poll::Ready(None),
    });
    if let Some(output) = light.await {
        return output;
    }
    loop {
        // The semaphore is never closed.
        let turn = TURNS.acquire().await;
        let polled = poll_fn(|context| Poll::Ready(aside(|| work.as_mut().poll(context)))).await;
        drop(turn);
        match polled {
            Poll::Ready(output) => return output,
            // The work has kept the waker.
            Poll::Pending => once_pending(false).await,
        }
    }
}

/// Says that the request handles so many bytes at once. Outside of [`scope`] it does nothing.
pub async fn weigh(bytes: usize) {
    if bytes > LIGHT && HEAVY.try_with(|heavy| !heavy.replace(true)).unwrap_or(false) {
        // What follows is for the next poll.
        once_pending(true).await;
    }
}

/// Pending once.
async fn once_pending(wake: bool) {
    let mut was_pending = false;
    poll_fn(|context| {
        if std::mem::replace(&mut was_pending, true) {
            return Poll::Ready(());
        }
        if wake {
            context.waker().wake_by_ref();
        }
        Poll::Pending
    })
    .await;
}

/// Does work that takes longer than others should wait for a thread of the runtime, which gets another one for as long,
/// if it has several.
pub fn aside<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        #[expect(clippy::disallowed_methods, reason = "the work ends by itself and waits for nothing")]
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        sync::{
            Arc,
            atomic::{AtomicBool, AtomicUsize, Ordering},
            mpsc,
        },
        time::Duration,
    };

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the wait stands for work, and another task ends it")]
    fn a_large_request_leaves_its_worker_to_others() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let (release, blocked) = mpsc::channel::<()>();
        let began = Arc::new(AtomicBool::new(false));
        let begins = began.clone();
        let large = runtime.spawn(scope(async move {
            weigh(LIGHT + 1).await;
            begins.store(true, Ordering::Relaxed);
            blocked.recv_timeout(Duration::from_secs(30)).is_ok()
        }));
        let small = runtime.spawn(scope(async move {
            while !began.load(Ordering::Relaxed) {
                weigh(LIGHT).await;
                tokio::task::yield_now().await;
            }
            release.send(()).is_ok()
        }));
        assert!(runtime.block_on(small).unwrap());
        assert!(runtime.block_on(large).unwrap(), "the small request ran after the large one");
    }

    #[test]
    fn large_requests_take_turns_and_all_end() {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let tasks: Vec<_> = (0..20)
            .map(|_| {
                let (now, most) = (now.clone(), most.clone());
                runtime.spawn(scope(async move {
                    weigh(LIGHT + 1).await;
                    for _ in 0..3 {
                        most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        std::thread::yield_now();
                        now.fetch_sub(1, Ordering::SeqCst);
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                }))
            })
            .collect();
        for task in tasks {
            runtime.block_on(task).unwrap();
        }
        assert!(most.load(Ordering::SeqCst) <= available_parallelism().map_or(2, usize::from).max(2));
    }

    #[tokio::test]
    async fn with_one_thread_it_runs_there() {
        assert_eq!(
            scope(async {
                weigh(LIGHT + 1).await;
                7
            })
            .await,
            7
        );
        weigh(LIGHT + 1).await;
    }
}
