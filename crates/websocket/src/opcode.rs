//! The type of a message or of a control frame.

/// The type of a message or of a control frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// A message of text. The crate does not check that it is UTF-8.
    Text,
    /// A message of bytes.
    Binary,
    /// The end of the connection.
    Close,
    /// A request for a pong.
    Ping,
    /// The answer to a ping, or a sign of life.
    Pong,
}

impl Opcode {
    pub(crate) fn is_control(self) -> bool {
        matches!(self, Opcode::Close | Opcode::Ping | Opcode::Pong)
    }

    pub(crate) fn number(self) -> u8 {
        match self {
            Opcode::Text => 1,
            Opcode::Binary => 2,
            Opcode::Close => 8,
            Opcode::Ping => 9,
            Opcode::Pong => 10,
        }
    }
}
