//! Tests a started server end to end: real clients, bad input, shutdowns and crashes.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops at anything unexpected")]

mod aggregation;
mod authorization;
mod bad_input;
mod certificates;
mod clients;
mod consistency;
mod crash;
mod custom_resources;
mod definitions;
mod etcd_outage;
mod gates;
mod helm;
mod history;
mod javascript;
mod kubectl;
mod lifecycle;
mod logs;
mod monitoring;
mod overload;
mod overrides;
mod own_network;
mod peers;
mod permissions;
mod python;
mod rolling_restart;
mod secrecy;
mod server_side_apply;
mod several_servers;
mod snapshot;
mod static_manifests;
mod storage_versions;
mod streams;
mod tokens;
mod traces;

type Result<T = ()> = std::result::Result<T, pintle_harness::Error>;
