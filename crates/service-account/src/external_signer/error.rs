//! The errors of an external signer.

use pintle_plugin_socket::{Code, Status, code_name, rpc_error};

/// A failed call to the signer, or an answer that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct ExternalSignerError {
    text: String,
    code: Option<Code>,
}

impl ExternalSignerError {
    pub(super) fn new(text: impl Into<String>) -> ExternalSignerError {
        ExternalSignerError { text: text.into(), code: None }
    }

    pub(super) fn of_call(status: &Status) -> ExternalSignerError {
        ExternalSignerError { text: rpc_error(status), code: Some(status.code()) }
    }

    pub(super) fn when(self, what: &str) -> ExternalSignerError {
        ExternalSignerError { text: format!("{what}: {}", self.text), ..self }
    }
}

/// The label of a result in metrics.
pub(super) fn label<T>(result: &Result<T, ExternalSignerError>) -> &'static str {
    match result {
        Ok(_) => code_name(Code::Ok),
        Err(error) => error.code.map_or("unknown-non-grpc", code_name),
    }
}
