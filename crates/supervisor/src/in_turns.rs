//! Polls a future again when it has woken itself.

use futures_util::task::AtomicWaker;
use std::{
    future::poll_fn,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};
use tokio::task::coop::has_budget_remaining;

/// How often a future that wakes itself is polled before other tasks run.
const MAX_TURNS: usize = 8;

/// Polls a future until it is ready.
///
/// The parts of a connection wake each other for each step: the request, the head of the response, its body. When they
/// are one task, the task wakes itself while it runs. The runtime would schedule it again and wake an idle worker, which
/// takes the task over. Here it is polled again at once, a few times; only wake-ups from outside reach the task.
pub async fn in_turns<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let turns = Arc::new(Turns::default());
    let waker = Waker::from(Arc::clone(&turns));
    poll_fn(|context| {
        // While the task is polled, nothing has to wake it.
        turns.task.take();
        for _ in 0..MAX_TURNS {
            turns.is_woken.store(false, Ordering::SeqCst);
            if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                return Poll::Ready(output);
            }
            if !turns.is_woken.load(Ordering::SeqCst) {
                turns.task.register(context.waker());
                if !turns.is_woken.load(Ordering::SeqCst) {
                    return Poll::Pending;
                }
                turns.task.take();
            }
            if !has_budget_remaining() {
                break;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

/// The waker of the future.
#[derive(Default)]
struct Turns {
    is_woken: AtomicBool,
    /// The task, while it is not polled.
    task: AtomicWaker,
}

impl Wake for Turns {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::SeqCst);
        self.task.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use std::sync::atomic::AtomicUsize;

    /// Counts wake-ups.
    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_future_that_wakes_itself_wakes_its_task_only_after_many_turns() {
        let wakes = Arc::new(Wakes::default());
        let waker = Waker::from(Arc::clone(&wakes));
        let poll_once = |pending: usize| {
            let mut left = pending;
            let future = poll_fn(|context| match left {
                0 => Poll::Ready(()),
                _ => {
                    left -= 1;
                    context.waker().wake_by_ref();
                    Poll::Pending
                }
            });
            pin!(in_turns(future)).poll(&mut Context::from_waker(&waker)).is_ready()
        };
        assert!(poll_once(MAX_TURNS - 1));
        assert_eq!(wakes.0.load(Ordering::SeqCst), 0);
        assert!(!poll_once(MAX_TURNS));
        assert_eq!(wakes.0.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn a_task_without_budget_lets_others_run() {
        let mut polled = 0;
        let future = poll_fn(|context| {
            polled += 1;
            while let Poll::Ready(progress) = tokio::task::coop::poll_proceed(context) {
                progress.made_progress();
            }
            Poll::<()>::Pending
        });
        assert!(in_turns(future).now_or_never().is_none());
        assert_eq!(polled, 1);
    }

    #[tokio::test]
    async fn wake_ups_from_outside_reach_the_task() {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let other = tokio::spawn(async move {
            tokio::task::yield_now().await;
            sender.send(7)
        });
        assert_eq!(in_turns(receiver).await, Ok(7));
        assert_eq!(other.await.unwrap(), Ok(()));
    }
}
