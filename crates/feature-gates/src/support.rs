//! The support of a gate's values.

/// The values of a gate that this server implements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    /// The gate concerns other components, or the implementation of kube-apiserver: no value changes what clients of an
    /// API server see.
    NoEffect,
    /// Both values are implemented.
    Both,
    /// The default of the binary's version is implemented. The server warns when another value applies.
    DefaultOnly,
}
