//! The legacy group, "" (`/api/v1`).

pub mod pod_spec;
pub mod pod_template;
