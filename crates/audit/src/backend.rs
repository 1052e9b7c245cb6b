//! One receiver of events, and how it is told.

use crate::{AuditMetrics, Log, Webhook, batch::Batcher, encode::Encoded};
use bytes::Bytes;
use std::{sync::Arc, time::Duration};

/// Whether requests wait for a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// They do not: events wait in a queue, and are lost when that is full.
    Batch,
    /// They do, and go on when it fails.
    Blocking,
    /// They do, and are refused when it fails before they are served.
    BlockingStrict,
}

impl Mode {
    /// All, by the names of the flags' values.
    pub const ALL: [(&str, Mode); 3] =
        [("batch", Mode::Batch), ("blocking", Mode::Blocking), ("blocking-strict", Mode::BlockingStrict)];
}

/// The queue of the mode `batch`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BatchConfig {
    /// How many events may wait.
    pub buffer_size: usize,
    /// How many events are sent together at most.
    pub max_batch_size: usize,
    /// How long the first event of a batch waits for others.
    pub max_batch_wait: Duration,
    /// How often batches are sent; `None` is as often as there are any.
    pub throttle: Option<Throttle>,
}

/// How often something may happen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Throttle {
    /// Times a second, on average.
    pub qps: f32,
    /// How many times at once, after there was nothing to do.
    pub burst: u32,
}

/// What is done with events and batches that are too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TruncateConfig {
    /// How large an event may be. A larger one loses the objects of request and response, and is lost itself when that is
    /// not enough.
    pub max_event_size: usize,
    /// How large a batch may be. A larger one is sent in parts.
    pub max_batch_size: usize,
}

/// A receiver of events. Dropping it loses what waits in its queue; see [`crate::Auditor::shutdown`].
pub struct Backend {
    target: Arc<Target>,
    delivery: Delivery,
    truncate: Option<TruncateConfig>,
}

/// How events get to the target.
enum Delivery {
    Blocking { is_strict: bool },
    Batch(Batcher),
}

/// Where events go.
pub(crate) enum Target {
    /// To a file or the standard output.
    Log(Log),
    /// To a server.
    Webhook(Box<Webhook>),
}

impl Target {
    /// The name in metrics and messages.
    pub(crate) fn plugin(&self) -> &'static str {
        match self {
            Target::Log(_) => "log",
            Target::Webhook(_) => "webhook",
        }
    }

    /// Sends events.
    ///
    /// # Errors
    /// Why they did not arrive.
    pub(crate) async fn send(&self, events: &[Bytes]) -> Result<(), String> {
        match self {
            Target::Log(log) => log.write(events.to_vec()).await.map_err(|error| error.to_string()),
            Target::Webhook(webhook) => webhook.send(events).await,
        }
    }

    /// Whether events have to be sent one after the other, as they came.
    pub(crate) fn keeps_order(&self) -> bool {
        match self {
            Target::Log(_) => true,
            Target::Webhook(_) => false,
        }
    }
}

impl Backend {
    /// A backend that writes to a log. To be called on the runtime.
    pub fn log(
        log: Log,
        mode: Mode,
        batch: &BatchConfig,
        truncate: Option<TruncateConfig>,
        metrics: &AuditMetrics,
    ) -> Backend {
        Backend::new(Target::Log(log), mode, batch, truncate, metrics)
    }

    /// A backend that posts to a server. To be called on the runtime.
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

    /// Whether requests wait for somebody else's answer.
    pub(crate) fn waits(&self) -> bool {
        matches!((&self.delivery, &*self.target), (Delivery::Blocking { .. }, Target::Webhook(_)))
    }

    /// Whether requests wait for it.
    pub(crate) fn is_blocking(&self) -> bool {
        matches!(self.delivery, Delivery::Blocking { .. })
    }

    pub(crate) fn max_event_size(&self) -> Option<usize> {
        self.truncate.map(|truncate| truncate.max_event_size)
    }

    /// Tells of an event. False when that failed and must not.
    pub(crate) async fn process(&self, encoded: &Encoded, metrics: &AuditMetrics) -> bool {
        let Some(json) = self.fitting(encoded) else {
            metrics.failed("truncate", 1, &"event is too large even after truncating");
            return true;
        };
        let event = if self.wants_legacy() { &encoded.legacy } else { json };
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

    /// The event in a size that the backend wants.
    fn fitting<'a>(&self, encoded: &'a Encoded) -> Option<&'a Bytes> {
        let fits = |json: &&Bytes| self.max_event_size().is_none_or(|max| json.len() <= max);
        Some(&encoded.json).filter(fits).or_else(|| encoded.truncated.as_ref().filter(fits))
    }

    /// Sends what waits, and takes no more.
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
