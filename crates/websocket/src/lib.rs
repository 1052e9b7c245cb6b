//! The WebSocket protocol ([RFC 6455](https://www.rfc-editor.org/rfc/rfc6455)) over a connection that HTTP has upgraded:
//! the server's [`Handshake`], a [`Reader`] and a [`Writer`] of frames.
//!
//! The reader returns the payload of a message piece by piece, in the sizes in which it arrives. A message of any size
//! takes the memory of one piece, and a caller that does not ask for the next piece stops the peer from sending. This is
//! why the crate exists ([decision 5](../../../docs/decisions/0005-libraries.md)).
//!
//! Extensions, such as compression, are not offered and not accepted. The crate knows neither HTTP serving nor the
//! subprotocols of Kubernetes.

mod frame;
mod handshake;
mod opcode;
mod read_error;
mod reader;
mod writer;

pub use frame::{Role, put_frame, put_header};
pub use handshake::{Handshake, HandshakeError, is_websocket_request};
pub use opcode::Opcode;
pub use read_error::ReadError;
pub use reader::{Event, MAX_FRAME_BYTES, Reader};
pub use writer::{CloseCode, Writer};
