//! Who you are ([`authn`]) and what you may do ([`authz`]).
//!
//! Nothing here knows HTTP: the server's filters take credentials and attributes from requests.

pub mod authn;
pub mod authz;
mod token_file;
mod union;
mod x509;

pub use token_file::{TokenFile, TokenFileError};
pub use union::Union;
pub use x509::ClientCertificates;
