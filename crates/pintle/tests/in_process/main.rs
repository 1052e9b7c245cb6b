//! Whole servers in this process, spoken to over TLS as any client would: what clients parse, what bad clients may
//! not do, and what must survive.
//!
//! Snapshots are the bytes of the answers. A changed snapshot is a changed API: compare it with what the reference
//! server does before accepting it (`INSTA_UPDATE=always cargo test -p pintle --test in_process`).

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops at anything unexpected")]

mod flood;
mod harness;
mod http2;
mod peers;

mod api_services;
mod apply;
mod audit;
mod authentication;
mod authorization;
mod bad_connections;
mod bad_input;
mod bad_values;
mod conversion;
mod custom_resources;
mod discovery;
mod disk;
mod enablement;
mod encryption;
mod history;
mod http2_floods;
mod layout;
mod lists;
mod objects;
mod openapi;
mod overload;
mod rbac;
mod robustness;
mod slow_readers;
mod statuses;
mod tables;
mod takeover;
mod tokens;
mod transport;
mod uncached;
mod watches;
mod wide_requests;
