//! Calls plugins, which are programs beside the server: gRPC over a Unix socket, each call with a time-out.
//!
//! A call waits until the plugin is reachable, within its time-out: the plugin may start after the server, or
//! restart. The crate knows no plugin's messages; the caller declares them.

mod client;
mod rpc_error;

pub use client::PluginClient;
pub use rpc_error::{code_name, rpc_error};
pub use tonic::{Code, Status};
