//! The generic API server: filters, verbs, negotiation, registry store, discovery, health, serving.
//!
//! It knows no particular kind: [`pintle_registry::Resource`] declarations define the resources that it serves.

pub mod body;
pub mod body_budget;
pub mod content;
pub mod discovery;
pub mod endpoints;
pub mod errors;
pub mod filters;
pub mod flow_control_endpoints;
pub mod health;
pub mod metrics;
pub mod negotiation;
pub mod offload;
pub mod query;
pub mod registry;
pub mod request;
pub mod request_info;
pub mod resource_config;
pub mod response;
pub mod response_budget;
pub mod server;
pub mod serving;
pub mod warning;
mod websocket_protocol;
pub mod work_queue;
