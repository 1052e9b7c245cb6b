//! How a command ended.

use crate::protocol::Protocol;
use pintle_go_forms::quote;
use pintle_machinery::text::escape_html;
use serde::{Deserialize, Serialize};

/// The reason of a status that has an exit code.
const NON_ZERO_EXIT_CODE: &str = "NonZeroExitCode";
/// The reason of the cause that is the exit code.
const EXIT_CODE: &str = "ExitCode";

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Success,
    /// With this exit code.
    Code(u8),
    /// There is no exit code: the command did not run, or the connection to it failed.
    Error(String),
}

#[derive(Serialize)]
struct Final<'a> {
    metadata: Metadata,
    status: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    message: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Details>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<u16>,
}

#[derive(Serialize)]
struct Metadata {}

#[derive(Default, Deserialize, Serialize)]
struct Details {
    #[serde(default)]
    causes: Vec<Cause>,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct Cause {
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
    message: String,
}

/// The fields of a status that are read.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Received {
    status: String,
    message: String,
    reason: String,
    details: Option<Details>,
}

impl Exit {
    /// The exit that a node's final message tells; an empty one is success.
    pub(crate) fn read(protocol: Protocol, message: &[u8]) -> Exit {
        if message.is_empty() {
            return Exit::Success;
        }
        match protocol {
            Protocol::V1 => Exit::Error(format!("Error executing remote command: {}", text(message))),
            Protocol::V2 | Protocol::V3 => {
                Exit::Error(format!("error executing remote command: {}", text(message)))
            }
            Protocol::V4 => match serde_json::from_slice(message) {
                Ok(status) => Exit::of(status)
                    .unwrap_or_else(|error| Exit::Error(format!("error stream protocol error: {error}"))),
                Err(error) => {
                    Exit::Error(format!("error stream protocol error: {error} in {}", quote(&text(message))))
                }
            },
        }
    }

    fn of(status: Received) -> Result<Exit, String> {
        match status.status.as_str() {
            "Success" => Ok(Exit::Success),
            "Failure" if status.reason == NON_ZERO_EXIT_CODE => {
                let details = status.details.ok_or("details must be set")?;
                let cause = details.causes.iter().find(|cause| cause.reason == EXIT_CODE);
                let code = &cause.ok_or_else(|| format!("no {EXIT_CODE} cause given"))?.message;
                let code = code.parse().map_err(|_| format!("invalid exit code value {}", quote(code)))?;
                Ok(Exit::Code(code))
            }
            "Failure" => Ok(Exit::Error(status.message)),
            _ => Err("unknown error".to_owned()),
        }
    }

    /// The final message to a client: a `Status` without kind.
    pub(crate) fn message(&self) -> String {
        let status = match self {
            Exit::Success => Final {
                metadata: Metadata {},
                status: "Success",
                message: String::new(),
                reason: "",
                details: None,
                code: None,
            },
            Exit::Code(code) => {
                let cause = Cause { reason: EXIT_CODE.to_owned(), message: code.to_string() };
                let message = format!(
                    "command terminated with non-zero exit code: command terminated with exit code {code}"
                );
                let details = Some(Details { causes: vec![cause] });
                Final {
                    metadata: Metadata {},
                    status: "Failure",
                    message,
                    reason: NON_ZERO_EXIT_CODE,
                    details,
                    code: None,
                }
            }
            Exit::Error(error) => {
                let cause = Cause { reason: String::new(), message: error.clone() };
                Final {
                    metadata: Metadata {},
                    status: "Failure",
                    message: format!("Internal error occurred: {error}"),
                    reason: "InternalError",
                    details: Some(Details { causes: vec![cause] }),
                    code: Some(500),
                }
            }
        };
        serde_json::to_string(&status).map(|json| escape_html(&json).to_string()).unwrap_or_default()
    }
}

fn text(message: &[u8]) -> String {
    String::from_utf8_lossy(message).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn final_messages_are_translated() {
        let check = |protocol: Protocol, message: &str, expected: &str| {
            assert_eq!(Exit::read(protocol, message.as_bytes()).message(), expected);
        };
        let success = r#"{"metadata":{},"status":"Success"}"#;
        check(Protocol::V4, r#"{"metadata":{},"status":"Success"}"#, success);
        check(Protocol::V2, "", success);
        let failure = r#"{"metadata":{},"status":"Failure","message":"command terminated with non-zero exit code: command terminated with exit code 3","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"3"}]}}"#;
        check(Protocol::V4, failure, failure);
        let internal = |message: &str| {
            format!(
                r#"{{"metadata":{{}},"status":"Failure","message":"Internal error occurred: {message}","reason":"InternalError","details":{{"causes":[{{"message":"{message}"}}]}},"code":500}}"#
            )
        };
        check(Protocol::V4, r#"{"status":"Failure","message":"a <b>"}"#, &internal("a \\u003cb\\u003e"));
        check(Protocol::V3, "no", &internal("error executing remote command: no"));
        check(Protocol::V1, "no", &internal("Error executing remote command: no"));
        let broken = |message: &str| internal(&format!("error stream protocol error: {message}"));
        check(Protocol::V4, "{}", &broken("unknown error"));
        check(
            Protocol::V4,
            r#"{"status":"Failure","reason":"NonZeroExitCode"}"#,
            &broken("details must be set"),
        );
        check(
            Protocol::V4,
            r#"{"status":"Failure","reason":"NonZeroExitCode","details":{}}"#,
            &broken("no ExitCode cause given"),
        );
        check(
            Protocol::V4,
            r#"{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"300"}]}}"#,
            &broken("invalid exit code value \\\"300\\\""),
        );
    }
}
