//! The texts of gRPC errors in Go's library.

use http::{HeaderMap, HeaderValue};
use tonic::{Code, Status};

const GRPC_STATUS: &str = "grpc-status";
/// The header in which a code without a name passes the gRPC library, for which it is [`Code::Unknown`].
const OTHER_CODE: &str = "pintle-other-grpc-status";

/// A gRPC status in the text format of Go's library.
pub fn rpc_error(status: &Status) -> String {
    let code = match other_code(status) {
        Some(code) => format!("Code({code})"),
        None => code_name(status.code()).to_owned(),
    };
    format!("rpc error: code = {code} desc = {}", status.message())
}

/// Copies a status code that has no name, in the headers or trailers of a response, so that [`rpc_error`] shows it.
pub(crate) fn keep_other_code(headers: &mut HeaderMap) {
    headers.remove(OTHER_CODE);
    let code = headers.get(GRPC_STATUS).and_then(|code| code.to_str().ok()?.parse::<i32>().ok());
    if let Some(code) = code.filter(|code| !(0..=Code::Unauthenticated as i32).contains(code)) {
        // Go holds it without a sign.
        headers.insert(OTHER_CODE, HeaderValue::from(code.cast_unsigned()));
    }
}

fn other_code(status: &Status) -> Option<&str> {
    status.metadata().get(OTHER_CODE)?.to_str().ok()
}

/// The name of a gRPC code in Go's library, which is a label in metrics.
pub fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "Canceled",
        Code::Unknown => "Unknown",
        Code::InvalidArgument => "InvalidArgument",
        Code::DeadlineExceeded => "DeadlineExceeded",
        Code::NotFound => "NotFound",
        Code::AlreadyExists => "AlreadyExists",
        Code::PermissionDenied => "PermissionDenied",
        Code::ResourceExhausted => "ResourceExhausted",
        Code::FailedPrecondition => "FailedPrecondition",
        Code::Aborted => "Aborted",
        Code::OutOfRange => "OutOfRange",
        Code::Unimplemented => "Unimplemented",
        Code::Internal => "Internal",
        Code::Unavailable => "Unavailable",
        Code::DataLoss => "DataLoss",
        Code::Unauthenticated => "Unauthenticated",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_without_a_name_are_shown_by_their_number() {
        let told = |code: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(GRPC_STATUS, HeaderValue::from_str(code).unwrap());
            headers.insert("grpc-message", HeaderValue::from_static("why"));
            headers.insert(OTHER_CODE, HeaderValue::from_static("99"));
            keep_other_code(&mut headers);
            rpc_error(&Status::from_header_map(&headers).unwrap())
        };
        assert_eq!(told("13"), "rpc error: code = Internal desc = why");
        assert_eq!(told("16"), "rpc error: code = Unauthenticated desc = why");
        assert_eq!(told("17"), "rpc error: code = Code(17) desc = why");
        assert_eq!(told("-1"), "rpc error: code = Code(4294967295) desc = why");
        assert_eq!(told("x"), "rpc error: code = Unknown desc = why");
    }
}
