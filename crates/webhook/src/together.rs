//! Polls a request and its connection in one task.

use futures_util::{
    future::{FusedFuture, FutureExt},
    task::AtomicWaker,
};
use std::{
    future::poll_fn,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

/// How often the futures may wake each other before the task lets others run.
const MAX_TURNS: usize = 32;

/// Polls `first` and a connection until `first` is ready. The connection need not end.
///
/// The two wake each other for each step: the request, the head of the response, its body. A task that wakes itself is
/// scheduled again, and wakes an idle worker of the runtime. Therefore they are polled in turns until neither has woken
/// the other, and only wake-ups from outside reach the task.
pub(crate) async fn together<F, C>(first: F, connection: &mut C) -> F::Output
where
    F: Future,
    C: FusedFuture + Unpin,
{
    let mut first = pin!(first);
    let turns = Arc::new(Turns::default());
    let waker = Waker::from(Arc::clone(&turns));
    poll_fn(|context| {
        turns.task.take();
        let inner = &mut Context::from_waker(&waker);
        for _ in 0..MAX_TURNS {
            turns.is_woken.store(false, Ordering::SeqCst);
            if let Poll::Ready(output) = first.as_mut().poll(inner) {
                return Poll::Ready(output);
            }
            // A connection that has ended tells its request why.
            let _ = connection.poll_unpin(inner);
            if turns.is_woken.load(Ordering::SeqCst) {
                continue;
            }
            turns.task.register(context.waker());
            if !turns.is_woken.load(Ordering::SeqCst) {
                return Poll::Pending;
            }
            turns.task.take();
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

/// The waker of the two futures.
#[derive(Default)]
struct Turns {
    is_woken: AtomicBool,
    /// The task, while it is not polling.
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
    fn futures_that_wake_each_other_wake_their_task_only_after_many_turns() {
        let wakes = Arc::new(Wakes::default());
        let waker = Waker::from(Arc::clone(&wakes));
        let poll_after = |turns: usize| {
            let mut left = turns;
            let connection = poll_fn(|context| -> Poll<()> {
                if left > 0 {
                    left -= 1;
                    context.waker().wake_by_ref();
                }
                Poll::Pending
            });
            let polled = AtomicUsize::new(0);
            let first = poll_fn(|_| match polled.fetch_add(1, Ordering::SeqCst) == turns {
                true => Poll::Ready(()),
                false => Poll::Pending,
            });
            let mut connection = connection.fuse();
            let mut both = pin!(together(first, &mut connection));
            both.as_mut().poll(&mut Context::from_waker(&waker)).is_ready()
        };
        assert!(poll_after(5));
        assert_eq!(wakes.0.load(Ordering::SeqCst), 0);
        assert!(!poll_after(MAX_TURNS + 1));
        assert_eq!(wakes.0.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn wake_ups_from_outside_reach_the_task() {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let other = tokio::spawn(async move {
            tokio::task::yield_now().await;
            sender.send(7)
        });
        let mut connection = std::future::pending::<()>().fuse();
        assert_eq!(together(receiver, &mut connection).await, Ok(7));
        assert_eq!(other.await.unwrap(), Ok(()));
    }
}
