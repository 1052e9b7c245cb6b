//! The generic API server: filters, verbs, negotiation, registry store, discovery, health, serving.
//!
//! It knows no particular kind: [`pintle_registry::Resource`] declarations define the resources that it serves.
//!
//! The layers, each of which uses only those before it:
//!
//! 1. [`base`]: requests, responses, bodies, handlers, the facts of a connection, negotiation and encoding;
//! 2. [`registry`]: the stores of the resources;
//! 3. [`filters`]: the filter chain, and the [`drain`] of requests at shutdown;
//! 4. [`proxying`]: requests that other servers answer, and [`transports`], the clients of nodes, pods and services;
//! 5. [`endpoints`] and [`discovery`]: the request scope, its dispatch, and one file per verb;
//! 6. [`server`]: the servers of the delegation chain;
//! 7. [`serving`]: sockets, TLS and HTTP.

pub mod base;
pub mod discovery;
pub mod drain;
pub mod endpoints;
pub mod errors;
pub mod filters;
pub mod flow_control_endpoints;
pub mod health;
pub mod metrics;
pub mod openapi_endpoints;
pub mod post_start_hooks;
pub mod proxying;
pub mod registry;
pub mod resource_config;
pub mod server;
pub mod serving;
mod streaming;
pub mod transports;
