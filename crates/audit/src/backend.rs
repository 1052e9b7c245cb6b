//! A receiver of events, and its mode of delivery.

use crate::{
    AuditMetrics, Log, Webhook,
    batch::{BatchConfig, Batcher},
    encode::Encoded,
    log::Queued,
    target::Target,
};
use bytes::Bytes;
use std::sync::Arc;

/// Whether requests wait for a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Requests do not wait: events are queued, and dropped when the queue is full.
    Batch,
    /// Requests wait, and continue when the backend fails.
    Blocking,
    /// Requests wait, and are refused when the backend fails before they are executed.
    BlockingStrict,
}

impl Mode {
    /// All modes, with the flag values that select them.
    pub const ALL: [(&str, Mode); 3] =
        [("batch", Mode::Batch), ("blocking", Mode::Blocking), ("blocking-strict", Mode::BlockingStrict)];
}

/// The size limits of events and batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TruncateConfig {
    /// The size limit of an event, in bytes. A larger event loses its request and response objects, and is dropped if
    /// it is still too large.
    pub max_event_size: usize,
    /// The size limit of a batch, in bytes. A larger batch is sent in parts.
    pub max_batch_size: usize,
}

/// A receiver of events. Dropping it drops its queued events; see [`crate::Auditor::shutdown`].
pub struct Backend {
    target: Arc<Target>,
    delivery: Delivery,
    truncate: Option<TruncateConfig>,
}

/// The delivery of an event while its request is executed.
pub(crate) enum Ahead {
    /// The event is queued.
    Queued(Queued),
    /// The event is delivered; or, if it is false, a strict backend failed.
    Processed(bool),
}

/// The delivery of events to the target.
enum Delivery {
    Blocking { is_strict: bool },
    Batch(Batcher),
}

impl Backend {
    /// A backend that writes to a log. Must be called on the runtime.
    pub fn log(
        log: Log,
        mode: Mode,
        batch: &BatchConfig,
        truncate: Option<TruncateConfig>,
        metrics: &AuditMetrics,
    ) -> Backend {
        Backend::new(Target::Log(log), mode, batch, truncate, metrics)
    }

    /// A backend that posts to a server. Must be called on the runtime.
    pub fn webhook(
        webhook: Webhook,
        mode: Mode,
        batch: &BatchConfig,
        truncate: Option<TruncateConfig>,
        metrics: &AuditMetrics,
    ) -> Backend {
        Backend::new(Target::Webhook(Box::new(webhook)), mode, batch, truncate, metrics)
    }

    fn new(
        target: Target,
        mode: Mode,
        batch: &BatchConfig,
        truncate: Option<TruncateConfig>,
        metrics: &AuditMetrics,
    ) -> Backend {
        let target = Arc::new(target);
        let delivery = match mode {
            Mode::Batch => {
                let max_bytes = truncate.map(|truncate| truncate.max_batch_size);
                Delivery::Batch(Batcher::start(target.clone(), batch, max_bytes, metrics.clone()))
            }
            Mode::Blocking => Delivery::Blocking { is_strict: false },
            Mode::BlockingStrict => Delivery::Blocking { is_strict: true },
        };
        Backend { target, delivery, truncate }
    }

    pub(crate) fn wants_legacy(&self) -> bool {
        match &*self.target {
            Target::Log(log) => log.is_legacy(),
            Target::Webhook(_) => false,
        }
    }

    /// Whether requests wait for the answer of another server.
    pub(crate) fn waits(&self) -> bool {
        matches!((&self.delivery, &*self.target), (Delivery::Blocking { .. }, Target::Webhook(_)))
    }

    /// Whether requests wait for the backend.
    pub(crate) fn is_blocking(&self) -> bool {
        matches!(self.delivery, Delivery::Blocking { .. })
    }

    pub(crate) fn max_event_size(&self) -> Option<usize> {
        self.truncate.map(|truncate| truncate.max_event_size)
    }

    /// Delivers an event before its request is executed. A log that cannot refuse the request writes it meanwhile.
    pub(crate) async fn process_ahead(&self, encoded: &Encoded, metrics: &AuditMetrics) -> Ahead {
        if let (Delivery::Blocking { is_strict: false }, Target::Log(log)) = (&self.delivery, &*self.target)
            && let Some(event) = self.fitting(encoded)
            && let Some(queued) = log.write_later(vec![event.clone()])
        {
            return Ahead::Queued(queued);
        }
        Ahead::Processed(self.process(encoded, metrics).await)
    }

    /// Waits for the delivery of an event that [`Backend::process_ahead`] queued.
    pub(crate) async fn confirm(&self, queued: Queued, metrics: &AuditMetrics) {
        if let Err(error) = queued.written().await {
            metrics.failed(self.target.plugin(), 1, &error);
        }
    }

    /// Delivers an event. Returns false when a strict backend failed.
    pub(crate) async fn process(&self, encoded: &Encoded, metrics: &AuditMetrics) -> bool {
        let Some(event) = self.fitting(encoded) else {
            metrics.failed("truncate", 1, &"event is too large even after truncating");
            return true;
        };
        match &self.delivery {
            Delivery::Batch(batcher) => {
                if let Err(error) = batcher.push(event.clone()) {
                    metrics.failed("buffered", 1, &error);
                }
                true
            }
            Delivery::Blocking { is_strict } => match self.target.send(std::slice::from_ref(event)).await {
                Ok(()) => true,
                Err(error) => {
                    metrics.failed(self.target.plugin(), 1, &error);
                    !is_strict
                }
            },
        }
    }

    /// The event in the backend's format. Its JSON is within the backend's size limit, truncated if necessary; `None` if
    /// it is too large even so.
    fn fitting<'a>(&self, encoded: &'a Encoded) -> Option<&'a Bytes> {
        let fits = |json: &&Bytes| self.max_event_size().is_none_or(|max| json.len() <= max);
        let json = Some(&encoded.json).filter(fits).or_else(|| encoded.truncated.as_ref().filter(fits))?;
        Some(if self.wants_legacy() { &encoded.legacy } else { json })
    }

    /// Flushes the queue, and accepts no more events.
    pub(crate) async fn shutdown(&self) {
        if let Delivery::Batch(batcher) = &self.delivery {
            batcher.shutdown().await;
        }
        if let Target::Log(log) = &*self.target
            && let Err(error) = log.write(Vec::new()).await
        {
            tracing::error!(%error, "audit events may not be in the log");
        }
    }
}
