//! Starts real servers for tests and measurements, with a plain HTTPS client.
//!
//! The server is the `pintle` binary as a child process with a fresh data directory, a free port and a static token
//! file. The client is blocking and independent of Kubernetes, so that a test controls every byte that it sends.
//!
//! [`Etcd`] is a cluster of real etcd servers, for the tests of the etcd engine. [`AdmittingWebhook`] is an admission
//! webhook, for measurements. [`ExtensionServer`] is an extension API server behind a server.
//!
//! The harness never sleeps for a fixed time: [`wait_for`] polls until a condition holds or the timeout has passed.

mod bulk_kubelet;
mod bulk_server;
mod busy_client;
mod client;
pub mod definition;
mod etcd;
mod etcd_member;
mod extension_server;
mod hostname;
mod https_server;
mod network;
mod reference;
mod server;
mod wait;
mod webhook;

pub use bulk_kubelet::BulkKubelet;
pub use bulk_server::BulkServer;
pub use busy_client::BusyClient;
pub use client::{Client, Connection, Lines, Response};
pub use etcd::{Etcd, EtcdConfig, EtcdTls};
pub use etcd_member::Member;
pub use extension_server::ExtensionServer;
pub use hostname::with_hostname;
pub use network::{ADDRESSES, in_own_network, is_in_own_network};
pub use server::{Config, MASTER_TOKEN, OTHER_TOKEN, OTHER_USER, Server};
pub use wait::wait_for;
pub use webhook::AdmittingWebhook;

/// An error of the harness, a text for the test's output.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
