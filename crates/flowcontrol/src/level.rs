//! An active priority level.

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

/// A level's queues, and the state shared by its requests. It exists as long as its requests, even after its object
/// is deleted.
pub(crate) struct PriorityLevel {
    pub(crate) name: String,
    /// Held only briefly, never across an await, and never two at once.
    pub(crate) queue_set: Mutex<QueueSet>,
    pub(crate) dropped: DroppedRequests,
    /// The largest estimate of a request's seats; 0 is the default limit.
    max_seats: AtomicU64,
    /// The object is deleted; the level is kept until it is idle.
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

/// A flow schema with its priority level: the classification of a request.
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

    /// The name of the priority level.
    pub fn level_name(&self) -> &str {
        &self.level.name
    }

    /// The uid of the flow schema.
    pub fn schema_uid(&self) -> &str {
        &self.schema.schema.uid
    }

    /// The uid of the priority level.
    pub fn level_uid(&self) -> &str {
        &self.level_uid
    }

    /// The hash of the request's flow; 0 if there is only one queue to choose.
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
