//! Whole servers in this process, spoken to over TLS as any client would: what clients parse, what bad clients may
//! not do, and what must survive.
//!
//! Snapshots are the bytes of the answers. A changed snapshot is a changed API: compare it with what the reference
//! server does before accepting it (`INSTA_UPDATE=always cargo test -p pintle --test in_process`).

mod harness;

mod objects;
mod statuses;
mod lists;
mod tables;
mod watches;
mod discovery;
mod openapi;
mod bad_input;
mod bad_connections;
mod overload;
mod robustness;
