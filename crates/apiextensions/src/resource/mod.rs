//! From a definition to what is served.

mod declaration;
mod scale;
mod schema;
mod strategy;

pub(crate) use declaration::declare;
pub(crate) use schema::Source;
