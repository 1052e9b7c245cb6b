//! Who you are ([`authn`]) and what you may do ([`authz`]).
//!
//! Nothing here serves HTTP: the server's filters take credentials and attributes from requests.

pub mod authn;
pub mod authz;
mod token_file;
mod union;
mod x509;

use std::{future::Future, pin::Pin};

pub use token_file::{TokenFile, TokenFileError};
pub use union::Union;
pub use x509::ClientCertificates;

/// A boxed future, as the object-safe traits here return it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
