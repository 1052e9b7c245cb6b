//! Tests whole servers in this process, over TLS like any client: the responses that clients parse, attacks by bad
//! clients, and durability.
//!
//! Snapshots are the bytes of the responses. A changed snapshot is a changed API: compare it with kube-apiserver before
//! accepting it (`INSTA_UPDATE=always cargo test -p pintle --test in_process`).

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops at anything unexpected")]

mod alone;
mod flood;
mod harness;
mod http2;
mod peers;

use pintle_counting_allocator::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

mod admission_webhooks;
mod api_services;
mod apply;
mod audit;
mod authentication;
mod authorization;
mod bad_connections;
mod bad_input;
mod bad_values;
mod connections;
mod conversion;
mod custom_resources;
mod debugging;
mod discovery;
mod disk;
mod egress;
mod enablement;
mod encryption;
mod history;
mod http2_floods;
mod http2_heads;
mod layout;
mod lists;
mod monitoring;
mod mutating_policies;
mod objects;
mod openapi;
mod outlines;
mod overload;
mod peer_proxy;
mod rbac;
mod robustness;
mod shutdown;
mod slow_readers;
mod statuses;
mod storage_versions;
mod tables;
mod takeover;
mod tokens;
mod traces;
mod transport;
mod uncached;
mod validating_policies;
mod watches;
mod web_sockets;
mod wide_requests;
