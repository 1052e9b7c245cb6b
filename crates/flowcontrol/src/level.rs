//! A priority level in force.

use crate::{
    counted_schema::CountedSchema,
    dropped_requests::DroppedRequests,
    metrics::{FlowControlMetrics, LevelMetrics},
    priority_level::{LimitResponse, PriorityLevelConfiguration},
    queue_set::QueueSet,
    request::RequestAttributes,
};
use parking_lot::Mutex;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

/// A level's queues, and what else is counted for all of its requests. It lives as long as requests of it, also when its
/// object is gone.
pub(crate) struct PriorityLevel {
    pub(crate) name: String,
    /// Held for moments, never while anything is waited for, and never two at once.
    pub(crate) queue_set: Mutex<QueueSet>,
    pub(crate) dropped: DroppedRequests,
    /// The most seats that a request of the level may be estimated at; 0 is as many as are sensible.
    max_seats: AtomicU64,
    /// Its object is gone, and it is kept only until it is empty.
    pub(crate) is_quiescing: AtomicBool,
}

impl PriorityLevel {
    pub(crate) fn new(
        now: Duration,
        configuration: &PriorityLevelConfiguration,
        metrics: &Arc<FlowControlMetrics>,
    ) -> PriorityLevel {
        let level_metrics = LevelMetrics::new(metrics, &configuration.name);
        PriorityLevel {
            name: configuration.name.clone(),
            queue_set: Mutex::new(QueueSet::new(now, configuration.response, level_metrics)),
            dropped: DroppedRequests::default(),
            max_seats: AtomicU64::new(0),
            is_quiescing: AtomicBool::new(false),
        }
    }

    pub(crate) fn max_seats(&self) -> u64 {
        self.max_seats.load(Ordering::Relaxed)
    }

    pub(crate) fn set_max_seats(&self, seats: u64) {
        self.max_seats.store(seats, Ordering::Relaxed);
    }
}

/// A flow schema with the level its requests go to: what a request is classified as.
pub struct Flow {
    pub(crate) schema: Arc<CountedSchema>,
    pub(crate) level: Arc<PriorityLevel>,
    pub(crate) level_uid: String,
    pub(crate) response: LimitResponse,
}

impl Flow {
    /// The name of the flow schema.
    pub fn schema_name(&self) -> &str {
        &self.schema.schema.name
    }

    /// The identity of the flow schema.
    pub fn schema_uid(&self) -> &str {
        &self.schema.schema.uid
    }

    /// The name of the priority level.
    pub fn level_name(&self) -> &str {
        &self.level.name
    }

    /// The identity of the priority level.
    pub fn level_uid(&self) -> &str {
        &self.level_uid
    }

    /// What stands for the flow of a request, if there is more than one queue to choose from.
    pub(crate) fn hash(&self, request: &dyn RequestAttributes) -> u64 {
        match self.response {
            LimitResponse::Queue(queuing) if queuing.queues > 1 => {
                let schema = &self.schema.schema;
                schema.flow_hash(schema.flow_distinguisher(request))
            }
            _ => 0,
        }
    }
}
