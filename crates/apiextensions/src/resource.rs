//! Builds the served resources of a definition.

mod declaration;
mod scale;
mod schema;
mod strategy;

pub(crate) use declaration::declare;
pub(crate) use schema::Source;
