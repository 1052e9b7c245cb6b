//! The queue of a backend in the mode `batch`.
//!
//! One task collects batches and passes each to a task that sends it, so that a slow receiver does not delay the
//! collecting at once. The number of batches in flight is bounded; beyond it the queue fills and events are dropped, as
//! they are when the queued events and those in flight have too many bytes. So memory is bounded, however long the
//! receiver is unavailable.

use crate::{AuditMetrics, room::Room, target::Target};
use bytes::Bytes;
use parking_lot::Mutex;
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch},
    task::{JoinHandle, JoinSet},
    time::{Instant, sleep_until},
};

/// The queue of the mode `batch`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BatchConfig {
    /// The largest number of queued events.
    pub buffer_size: usize,
    /// The largest number of events in a batch.
    pub max_batch_size: usize,
    /// The longest time that the first event of a batch waits for others.
    pub max_batch_wait: Duration,
    /// The rate limit of batches; `None` is no limit.
    pub throttle: Option<Throttle>,
}

/// A rate limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Throttle {
    /// Batches per second, on average.
    pub qps: f32,
    /// The number of batches that may be sent at once after an idle time.
    pub burst: u32,
}

/// The largest number of batches in flight.
const MAX_IN_FLIGHT: usize = 32;

/// A queued event, and its place in the room.
type Waiting = (Bytes, OwnedSemaphorePermit);

/// The sending end of the queue.
pub(crate) struct Batcher {
    queue: mpsc::Sender<Waiting>,
    room: Room,
    stop: watch::Sender<bool>,
    worker: Mutex<Option<JoinHandle<()>>>,
}

impl Batcher {
    /// Starts the task that empties the queue.
    pub(crate) fn start(
        target: Arc<Target>,
        config: &BatchConfig,
        max_bytes: Option<usize>,
        metrics: AuditMetrics,
    ) -> Batcher {
        let (queue, events) = mpsc::channel(config.buffer_size.max(1));
        let (stop, stopped) = watch::channel(false);
        let worker = Worker {
            events,
            stopped,
            config: *config,
            max_bytes: max_bytes.unwrap_or(usize::MAX),
            left_over: None,
            bucket: config.throttle.map(TokenBucket::new),
            sending: Sending {
                target,
                metrics,
                in_flight: JoinSet::new(),
                permits: Arc::new(Semaphore::new(MAX_IN_FLIGHT)),
            },
        };
        let worker = Mutex::new(Some(tokio::spawn(worker.run())));
        Batcher { queue, room: Room::new(), stop, worker }
    }

    /// Queues an event.
    ///
    /// # Errors
    /// When the queue is full or closed; the event is dropped.
    pub(crate) fn push(&self, event: Bytes) -> Result<(), &'static str> {
        const FULL: &str = "audit buffer queue blocked";
        let place = self.room.try_take(event.len()).ok_or(FULL)?;
        self.queue.try_send((event, place)).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => FULL,
            mpsc::error::TrySendError::Closed(_) => "audit backend shut down",
        })
    }

    /// Flushes the queue, and accepts no more events.
    pub(crate) async fn shutdown(&self) {
        self.stop.send_replace(true);
        let worker = self.worker.lock().take();
        if let Some(worker) = worker
            && let Err(error) = worker.await
        {
            tracing::error!(%error, "the queue of audit events ended unexpectedly");
        }
    }
}

struct Worker {
    events: mpsc::Receiver<Waiting>,
    stopped: watch::Receiver<bool>,
    config: BatchConfig,
    max_bytes: usize,
    /// An event that did not fit into the last batch.
    left_over: Option<Waiting>,
    bucket: Option<TokenBucket>,
    sending: Sending,
}

impl Worker {
    async fn run(mut self) {
        loop {
            let batch = self.collect().await;
            let is_over = batch.is_empty() && self.events.is_closed() && self.events.is_empty();
            if !batch.is_empty() {
                if let Some(bucket) = &mut self.bucket {
                    bucket.take().await;
                }
                self.sending.send(batch).await;
            }
            if is_over {
                break;
            }
        }
        self.sending.finish().await;
    }

    /// The next batch: a full one, or the events collected by the deadline or at shutdown.
    async fn collect(&mut self) -> Vec<Waiting> {
        let max_events = self.config.max_batch_size.max(1);
        let mut batch: Vec<Waiting> = self.left_over.take().into_iter().collect();
        let mut bytes: usize = batch.iter().map(|(event, _)| event.len()).sum();
        let deadline = Instant::now() + self.config.max_batch_wait;
        while batch.len() < max_events {
            let event = tokio::select! {
                biased;
                event = self.events.recv() => event,
                () = stop(&mut self.stopped), if !self.events.is_closed() => {
                    // The queued events are still received.
                    self.events.close();
                    continue;
                }
                // Batches of one event do not wait for a deadline.
                () = sleep_until(deadline), if max_events > 1 => break,
            };
            let Some(event) = event else { break };
            bytes += event.0.len();
            if bytes > self.max_bytes && !batch.is_empty() {
                self.left_over = Some(event);
                break;
            }
            batch.push(event);
        }
        batch
    }
}

async fn stop(stopped: &mut watch::Receiver<bool>) {
    // A dropped sender has the same meaning as a stop.
    drop(stopped.wait_for(|stopped| *stopped).await);
}

/// Batches in flight.
struct Sending {
    target: Arc<Target>,
    metrics: AuditMetrics,
    in_flight: JoinSet<()>,
    permits: Arc<Semaphore>,
}

impl Sending {
    async fn send(&mut self, batch: Vec<Waiting>) {
        while self.in_flight.try_join_next().is_some() {}
        let (target, metrics) = (self.target.clone(), self.metrics.clone());
        if target.keeps_order() {
            send(&target, &metrics, batch).await;
            return;
        }
        // The semaphore is never closed.
        let permit = self.permits.clone().acquire_owned().await;
        self.in_flight.spawn(async move {
            send(&target, &metrics, batch).await;
            drop(permit);
        });
    }

    async fn finish(mut self) {
        while self.in_flight.join_next().await.is_some() {}
    }
}

async fn send(target: &Target, metrics: &AuditMetrics, batch: Vec<Waiting>) {
    let (batch, _places): (Vec<Bytes>, Vec<_>) = batch.into_iter().unzip();
    if let Err(error) = target.send(&batch).await {
        metrics.failed(target.plugin(), batch.len(), &error);
    }
}

/// Limits a rate, with a burst after an idle time.
struct TokenBucket {
    interval: Duration,
    burst: u32,
    /// The time up to which the taken tokens are paid for.
    paid_until: Instant,
}

impl TokenBucket {
    fn new(throttle: Throttle) -> TokenBucket {
        let interval = Duration::from_secs_f64(1.0 / f64::from(throttle.qps).max(1e-6));
        let burst = throttle.burst.max(1);
        TokenBucket { interval, burst, paid_until: Instant::now() }
    }

    /// Waits for a token.
    async fn take(&mut self) {
        let now = Instant::now();
        // Each token advances the time by an interval; it may be ahead by the intervals of the burst.
        self.paid_until = self.paid_until.max(now) + self.interval;
        let ahead = self.interval * self.burst;
        if let Some(turn) = self.paid_until.checked_sub(ahead)
            && turn > now
        {
            sleep_until(turn).await;
        }
    }
}

#[cfg(test)]
mod tests;
