//! The traits and types of authentication ([`authn`]) and authorization ([`authz`]): users' credentials, the attributes
//! of their requests, and the interfaces of authenticators and authorizers.
//!
//! The authenticators are in `pintle-authentication` and `pintle-service-account`, the authorizers in `pintle-rbac` and
//! `pintle-authorization`. This crate serves no HTTP: the server's filters extract credentials and attributes from
//! requests.

pub mod authn;
pub mod authz;
mod request_headers;

use std::{future::Future, pin::Pin};

pub use request_headers::RequestHeaders;

/// A boxed future, the return type of the object-safe traits here.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
