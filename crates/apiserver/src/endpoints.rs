//! The API endpoints: one file per verb, none of which knows a kind by name.
//!
//! [`ApiEndpoints::serve`] makes the request scope, selects the action and calls its verb.

mod action;
mod admission;
mod api_endpoints;
mod apply;
mod body_kind;
mod computed;
mod connect;
mod converted_selectable;
mod create;
mod create_named;
mod decode;
mod delete;
mod delete_collection;
mod dispatch;
mod encoder;
mod frame_size;
mod get;
mod go_names;
mod list;
mod list_body;
mod object_versions;
mod page;
mod patch;
mod request_scope;
mod responder;
mod scale;
mod selection;
mod shard_selector;
#[cfg(test)]
mod testing;
mod update;
mod watch;
mod write;
mod write_limit;

pub use action::method_not_allowed;
pub use api_endpoints::ApiEndpoints;
pub(crate) use write_limit::WriteLimit;
