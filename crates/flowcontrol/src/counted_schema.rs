//! A flow schema with its metrics.

use crate::{flow_schema::FlowSchema, metrics::FlowMetrics};

/// An active flow schema, with the metrics of its requests.
pub(crate) struct CountedSchema {
    pub(crate) schema: FlowSchema,
    pub(crate) metrics: FlowMetrics,
}
