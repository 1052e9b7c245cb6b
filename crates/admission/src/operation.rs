//! Defines [`Operation`].

/// The operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// The object is created.
    Create,
    /// The object is updated; this includes patches.
    Update,
    /// The object is deleted.
    Delete,
    /// A stream or a proxied request.
    Connect,
}

impl Operation {
    /// The operation in the spelling of webhooks and policies.
    pub fn as_str(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
            Operation::Connect => "CONNECT",
        }
    }
}
