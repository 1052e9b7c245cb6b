//! Flow control for requests: classifies, estimates, queues, and admits or refuses them.

use crate::{
    WatchTracker,
    borrowing::ADJUSTMENT_PERIOD,
    clock::Clock,
    configuration::{Classification, Levels, StatusUpdate},
    held::{Deadlines, Held},
    level::{Flow, PriorityLevel},
    metrics::FlowControlMetrics,
    queue_set::{Arrival, Decision, RejectReason},
    request::RequestAttributes,
    watch_tracker::RegisteredWatch,
    work::{ResourceStatsSource, WorkEstimate, WorkEstimator},
};
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use pintle_machinery::Value;
use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::sync::Notify;

/// The parts and limits of flow control.
pub struct FlowControlConfig {
    /// The time source.
    pub clock: Arc<dyn Clock>,
    /// The number of seats of the server: `--max-requests-inflight` plus `--max-mutating-requests-inflight`.
    pub server_concurrency_limit: u64,
    /// The statistics of stored objects.
    pub stats: Arc<dyn ResourceStatsSource>,
    /// The metrics.
    pub metrics: Arc<FlowControlMetrics>,
}

/// Decides for every request whether and when it is executed.
///
/// Lock order: the levels, then the queues of one level. A request takes only the latter.
pub struct FlowControl {
    clock: Arc<dyn Clock>,
    metrics: Arc<FlowControlMetrics>,
    estimator: WorkEstimator,
    watches: Arc<WatchTracker>,
    levels: Mutex<Levels>,
    /// The objects configured last; they are applied again when a deleted level has become idle.
    objects: Mutex<(Vec<Value>, Vec<Value>)>,
    classification: ArcSwap<Classification>,
    held: Arc<Deadlines<Seat>>,
    /// The time at which [`FlowControl::run`] wakes next, in nanoseconds.
    wakes_at: AtomicU64,
    wake: Notify,
    has_emptied: AtomicBool,
}

/// A classified request, and its result.
pub struct Admission {
    /// The flow of the request.
    pub flow: Arc<Flow>,
    /// The work that the request is taken for.
    pub estimate: WorkEstimate,
    /// Its seat, or the reason for refusing it.
    pub seat: Result<Seat, Refusal>,
}

/// The refusal of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// The reason.
    pub reason: RejectReason,
    /// The number of seconds after which the request may be retried.
    pub retry_after: u64,
}

/// The seat of an executing request. Dropping it finishes the request.
pub struct Seat {
    control: Arc<FlowControl>,
    level: Arc<PriorityLevel>,
    id: u64,
    /// The request is still in its queue.
    is_waiting: bool,
}

/// A seat that is released when this is dropped, or at its deadline.
pub type HeldSeat = Held<Seat>;

/// The interval at which watermarks are published and held seats are checked.
const TICK: Duration = Duration::from_secs(1);

impl FlowControl {
    /// Flow control with only the mandatory objects.
    pub fn new(config: FlowControlConfig) -> Arc<FlowControl> {
        let watches = Arc::new(WatchTracker::default());
        let mut levels = Levels::new(config.server_concurrency_limit, config.metrics.clone());
        let (classification, _) = levels.configure(config.clock.now(), &[], &[]);
        Arc::new(FlowControl {
            clock: config.clock,
            metrics: config.metrics,
            estimator: WorkEstimator::new(config.stats, watches.clone()),
            watches,
            levels: Mutex::new(levels),
            objects: Mutex::default(),
            classification: ArcSwap::from_pointee(classification),
            held: Arc::default(),
            wakes_at: AtomicU64::new(u64::MAX),
            wake: Notify::new(),
            has_emptied: AtomicBool::new(false),
        })
    }

    /// Applies all priority levels and flow schemas: `PriorityLevelConfiguration` and `FlowSchema` objects of
    /// `flowcontrol.apiserver.k8s.io/v1`. Waiting and executing requests keep their places. Returns the status
    /// updates that schemas need.
    pub fn configure(&self, levels: Vec<Value>, schemas: Vec<Value>) -> Vec<StatusUpdate> {
        let mut objects = self.objects.lock();
        *objects = (levels, schemas);
        self.apply(&objects.0, &objects.1)
    }

    fn apply(&self, levels: &[Value], schemas: &[Value]) -> Vec<StatusUpdate> {
        let (classification, updates) = self.levels.lock().configure(self.clock.now(), levels, schemas);
        self.classification.store(Arc::new(classification));
        updates
    }

    /// Admits or refuses a request, which waits in a queue for at most `patience`.
    ///
    /// Cancel safe: a request whose future is dropped leaves its queue.
    pub async fn admit(
        self: &Arc<Self>,
        request: Arc<dyn RequestAttributes>,
        patience: Duration,
    ) -> Admission {
        let flow = self.classification.load().classify(&*request).clone();
        let (estimate, watches) = self.estimator.estimate(&*request, flow.level.max_seats());
        flow.schema.metrics.work_estimated_seats(estimate.max_seats());
        if let Some(watches) = watches {
            flow.schema.metrics.watch_count(watches);
        }
        let hash = flow.hash(&*request);
        let arrival = Arrival { schema: flow.schema.clone(), request, estimate, hash };
        let (decision, next_release) = {
            let mut queue_set = flow.level.queue_set.lock();
            (queue_set.arrive(self.clock.now(), arrival), queue_set.next_release())
        };
        self.wake_by(next_release);
        let seat = |id, is_waiting| Seat { control: self.clone(), level: flow.level.clone(), id, is_waiting };
        let seat = match decision {
            Decision::Execute(id) => Ok(seat(id, false)),
            Decision::Reject(reason) => Err(reason),
            Decision::Wait(id, receiver) => {
                let mut seat = seat(id, true);
                let let_in = tokio::time::timeout(patience, receiver).await;
                // The request may have been dispatched at the last moment.
                if matches!(let_in, Ok(Ok(()))) || !seat.leave_queue() {
                    seat.is_waiting = false;
                    Ok(seat)
                } else {
                    Err(RejectReason::TimeOut)
                }
            }
        };
        let seat = seat.map_err(|reason| {
            let retry_after = flow.level.dropped.record(self.clock.now());
            Refusal { reason, retry_after }
        });
        Admission { flow, estimate, seat }
    }

    /// Counts a watch for the estimates of writes, until the result is dropped.
    pub fn register_watch(&self, request: &dyn RequestAttributes) -> Option<RegisteredWatch> {
        self.watches.register(request)
    }

    /// Adjusts the limits of the levels periodically, releases lingering seats in time, and publishes watermarks.
    /// Runs until `shutdown` completes.
    pub async fn run(&self, shutdown: impl Future<Output = ()>) {
        let mut shutdown = pin!(shutdown);
        let mut adjusted = self.clock.now();
        let mut ticked = adjusted;
        loop {
            self.wakes_at.store(u64::MAX, Ordering::SeqCst);
            let now = self.clock.now();
            if self.has_emptied.swap(false, Ordering::Relaxed) || now >= adjusted + ADJUSTMENT_PERIOD {
                self.forget_empty_levels();
            }
            if now >= adjusted + ADJUSTMENT_PERIOD {
                self.levels.lock().adjust(now);
                adjusted = now;
            }
            if now >= ticked + TICK {
                self.metrics.publish_watermarks();
                self.held.release_expired(now);
                ticked = now;
            }
            let next = self.release_lingering(now).map_or(ticked + TICK, |next| next.min(ticked + TICK));
            self.wakes_at.store(nanoseconds(next), Ordering::SeqCst);
            tokio::select! {
                () = &mut shutdown => return,
                () = self.wake.notified() => {}
                () = tokio::time::sleep(next.saturating_sub(now)) => {}
            }
        }
    }

    fn forget_empty_levels(&self) {
        if self.levels.lock().has_emptied() {
            let objects = self.objects.lock();
            self.apply(&objects.0, &objects.1);
        }
    }

    /// Releases all seats whose time is over. Returns the time of the next release.
    fn release_lingering(&self, now: Duration) -> Option<Duration> {
        let levels: Vec<Arc<PriorityLevel>> = self.levels.lock().all().cloned().collect();
        let next = levels.iter().filter_map(|level| {
            let mut queue_set = level.queue_set.lock();
            queue_set.advance(now);
            queue_set.next_release()
        });
        next.min()
    }

    /// Wakes the background task if `next` is earlier than its next wake-up.
    fn wake_by(&self, next: Option<Duration>) {
        if next.is_some_and(|next| nanoseconds(next) < self.wakes_at.load(Ordering::SeqCst)) {
            self.wake.notify_one();
        }
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    pub(crate) fn with_levels<T>(&self, use_them: impl FnOnce(&Levels) -> T) -> T {
        use_them(&self.levels.lock())
    }
}

impl Seat {
    /// Leaves the queue. Returns whether the request was still waiting.
    fn leave_queue(&mut self) -> bool {
        let waited = self.level.queue_set.lock().cancel(self.control.clock.now(), self.id);
        self.is_waiting = false;
        waited
    }

    /// Holds the seat while a response is sent, for at most `limit`: a client that does not read must not keep a
    /// seat. [`FlowControl::run`] enforces the limit, to the second.
    pub fn hold(self, limit: Duration) -> HeldSeat {
        let end = self.control.clock.now() + limit;
        let held = self.control.held.clone();
        held.hold(self, end)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let now = self.control.clock.now();
        let mut queue_set = self.level.queue_set.lock();
        if !(self.is_waiting && queue_set.cancel(now, self.id)) {
            queue_set.finish(now, self.id);
        }
        let next = queue_set.next_release();
        let is_idle = queue_set.is_idle();
        drop(queue_set);
        if is_idle && self.level.is_quiescing.load(Ordering::Relaxed) {
            self.control.has_emptied.store(true, Ordering::Relaxed);
            self.control.wake.notify_one();
        } else {
            self.control.wake_by(next);
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
