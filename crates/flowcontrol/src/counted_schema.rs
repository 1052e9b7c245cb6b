//! A flow schema with its counters.

use crate::{flow_schema::FlowSchema, metrics::FlowMetrics};

/// A flow schema as it is in force, with the counters of its requests.
pub(crate) struct CountedSchema {
    pub(crate) schema: FlowSchema,
    pub(crate) metrics: FlowMetrics,
}
