//! A kubelet without containers, for tests of streams: logs, commands, and connections to ports, over SPDY and WebSocket.

mod command;
mod kubelet;
mod ports;
mod spdy;
mod streams;
mod websocket;

pub use kubelet::Kubelet;
