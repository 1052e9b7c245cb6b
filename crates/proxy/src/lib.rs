//! A streaming reverse proxy: forwards a request to another server and answers with its response.
//!
//! Bodies pass in both directions piece by piece, so that a watch is not delayed and a body of any size takes bounded
//! memory: a side that does not read stops the other side from sending. A connection that is upgraded, to SPDY,
//! WebSocket or any other protocol, becomes a tunnel of bytes.
//!
//! The crate knows neither users nor API services: its caller decides where a request goes, adds headers, and has
//! authorized the request.

mod backend_body;
mod body;
mod failure;
mod fetch;
mod forward;
mod headers;
mod html;
mod links;
mod target;
mod throttled;
mod tunnel;
mod upgrade;

pub use backend_body::{BackendBody, BackendBodyError};
pub use body::{BrokenOff, Relayed, ResponseBody};
pub use failure::{Failure, failure};
pub use fetch::fetch;
pub use forward::Forwarding;
pub use headers::asks_for_upgrade;
pub use target::{Origin, Target};
pub use throttled::Throttled;
pub use tunnel::{Carry, Connection, TunnelLife};
pub use upgrade::{Switch, SwitchError, switch};
