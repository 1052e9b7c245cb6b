//! The base of the server: requests and responses, and the facts about them that all later layers share.
//!
//! It knows no filter, no endpoint, no store and no socket.

pub mod body;
pub mod body_budget;
pub(crate) mod client;
pub(crate) mod compression;
pub(crate) mod connection;
pub(crate) mod connection_lease;
pub mod content;
pub(crate) mod deadline;
pub(crate) mod encoding;
pub(crate) mod finish;
pub mod handler;
pub(crate) mod lent_body;
pub(crate) mod log_fields;
pub mod negotiation;
pub mod peer;
pub mod query;
pub(crate) mod recurrence;
pub mod request;
pub mod request_info;
pub mod response;
pub(crate) mod route_slot;
pub(crate) mod stop;
pub mod warning;
pub(crate) mod websocket;
pub(crate) mod websocket_protocol;
