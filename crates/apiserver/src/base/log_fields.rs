//! Fields that later filters add to the log entry of a request.

use parking_lot::Mutex;
use std::{sync::Arc, time::Duration};

/// The decision of priority and fairness about a request: an extension of requests that are logged.
#[derive(Clone, Default)]
pub(crate) struct LogFields(Arc<Mutex<Option<FlowFields>>>);

/// The classification of a request, and the work that it was taken for.
#[derive(Clone)]
pub(crate) struct FlowFields {
    pub(crate) priority_level: String,
    pub(crate) flow_schema: String,
    pub(crate) initial_seats: u64,
    pub(crate) final_seats: u64,
    pub(crate) additional_latency: Duration,
    /// The time in which the request was served; `None` if it was refused.
    pub(crate) execution_time: Option<Duration>,
}

impl LogFields {
    /// Sets the fields of priority and fairness.
    pub(crate) fn set(&self, fields: FlowFields) {
        *self.0.lock() = Some(fields);
    }

    /// The fields of priority and fairness; `None` for requests that it does not see.
    pub(crate) fn flow(&self) -> Option<FlowFields> {
        self.0.lock().clone()
    }
}
