//! A real server, started for a test or a measurement, and a plain HTTPS client for it.
//!
//! The server is the `pintle` binary as a child process with a fresh data directory, a free port and a static token
//! file. The client is blocking and knows nothing of Kubernetes, so that a test decides about every byte it sends.
//!
//! [`Etcd`] is a cluster of real etcd servers, for the tests of the engine that keeps its data there.
//!
//! Nothing here sleeps for a result: [`wait_for`] asks again until a condition holds or the time is up.

mod client;
pub mod definition;
mod etcd;
mod etcd_member;
mod server;
mod wait;

pub use client::{Client, Connection, Lines, Response};
pub use etcd::{Etcd, EtcdConfig, EtcdTls};
pub use etcd_member::Member;
pub use server::{Config, MASTER_TOKEN, OTHER_TOKEN, Server};
pub use wait::wait_for;

/// What goes wrong in a harness, as text for the one who reads the test's output.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
