//! The generic API server: filters, verbs, negotiation, registry store, discovery, health, serving.
//!
//! It knows no particular kind: [`pintle_registry::Resource`] declarations define the resources that it serves.

pub mod body;
pub mod body_budget;
mod connection;
pub mod content;
mod deadline;
pub mod discovery;
mod encoding;
pub mod endpoints;
pub mod errors;
pub mod filters;
pub mod flow_control_endpoints;
pub mod handler;
pub mod health;
mod lent_body;
pub mod metrics;
pub mod negotiation;
pub mod offload;
pub mod peer;
pub mod query;
pub mod registry;
pub mod request;
pub mod request_info;
pub mod resource_config;
pub mod response;
pub mod server;
pub mod serving;
mod stop;
pub mod warning;
mod websocket_protocol;
pub mod work_queue;
