//! Validation rules for names, labels and metadata that all kinds share, with the messages that clients see.

mod conditions;
mod formats;
mod ip;
mod labels;
mod names;
mod object_meta;
mod webhook_client;

pub use conditions::*;
pub use formats::*;
pub use ip::*;
pub use labels::*;
pub use names::*;
pub use object_meta::*;
pub use webhook_client::*;
