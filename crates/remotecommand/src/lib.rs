//! Streams between clients that speak WebSocket and nodes that speak SPDY
//! ([KEP-4006](https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/4006-transition-spdy-to-websockets)).
//!
//! - [`Command`]: the standard streams of a command. The client speaks `v5.channel.k8s.io`: each message begins with the
//!   number of its channel. The node gets a SPDY session with a stream for each channel.
//! - [`Ports`]: connections to ports of a pod. The client speaks SPDY inside the messages of a WebSocket, whose bytes pass
//!   to the node.
//!
//! Clients of older protocols are not translated: their requests pass to the node as they are.
//!
//! Bytes pass piece by piece in both directions. A side that does not read stops the other one from sending, and takes
//! some tens of kilobytes. The caller has authorized the request; nothing of it but its streams reaches the node.

mod activity;
mod channels;
mod client_input;
mod command;
mod exit;
mod ports;
mod protocol;
mod session;
mod terminal_size;

pub use command::{Command, CommandStreams};
pub use ports::{Ports, Refusal};
