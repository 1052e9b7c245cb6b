//! The response of a webhook.

use bytes::Bytes;
use pintle_go_forms::media_type_error;
use pintle_machinery::{
    Map, Value, ValueExt,
    codec::{DecodeError, json, yaml},
    server_failure,
    text::go_json_type,
};
use std::borrow::Cow;

/// A response, of any status.
#[derive(Debug, Clone)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// `Content-Type`, or "".
    pub content_type: String,
    /// `Retry-After`, if the response has the header.
    pub retry_after: Option<String>,
    /// The whole body.
    pub body: Bytes,
    /// The size of the request in bytes, which bounds the memory of the decoded response.
    pub question: usize,
}

/// The maximum size of the part of a body that errors show, in bytes.
const MAX_SHOWN: usize = 2048;

impl Response {
    /// The delay after which an overloaded or failing server wants the request again.
    pub(crate) fn retry_after_seconds(&self) -> Option<u64> {
        let retry_after = self.retry_after.as_ref().filter(|_| self.status == 429 || self.status >= 500)?;
        retry_after.parse().ok()
    }

    /// The object in the body, which is JSON or YAML; kind and apiVersion are optional.
    ///
    /// # Errors
    /// The error text of Kubernetes' client: for a status other than success, an empty body, or a body that is not an
    /// object; and when the decoded body takes far more memory than the request.
    pub fn object(&self) -> Result<Value, String> {
        match json::decode_any_answer(&self.json()?, self.question) {
            Ok(value @ Value::Object(_)) => Ok(value),
            Ok(Value::Null) => Ok(Value::Object(Map::new())),
            Ok(other) => Err(no_object(go_json_type(&other))),
            Err(error @ DecodeError::TooHeavy) => Err(error.to_string()),
            Err(error) => Err(format!("couldn't get version/kind; json parse error: {error}")),
        }
    }

    /// The body of a response with a status of success, as JSON. As in Kubernetes' client, a body that does not begin as
    /// a JSON object is YAML, in which almost anything is a string.
    ///
    /// # Errors
    /// The error text of Kubernetes' client: for another status, an empty body, or invalid YAML; and when the value of
    /// YAML takes far more memory than the request.
    pub fn json(&self) -> Result<Cow<'_, [u8]>, String> {
        let body = self.successful_body()?;
        if body.trim_ascii_start().starts_with(b"{") {
            return Ok(Cow::Borrowed(body));
        }
        let converted = yaml::answer_to_json(body, self.question);
        converted.map(|converted| Cow::Owned(converted.json)).map_err(|error| error.to_string())
    }

    fn successful_body(&self) -> Result<&Bytes, String> {
        /// The largest status of success, to Kubernetes' client.
        const PARTIAL_CONTENT: u16 = 206;
        if let Some(error) =
            Some(&*self.content_type).filter(|text| !text.is_empty()).and_then(media_type_error)
        {
            return Err(format!("Internal error occurred: {error}"));
        }
        if !(200..=PARTIAL_CONTENT).contains(&self.status) {
            return Err(self.failure());
        }
        if self.body.is_empty() {
            // Kubernetes' client takes an answer without a type for one of the type of the question.
            let content_type = match &*self.content_type {
                "" => "application/json",
                told => told,
            };
            return Err(format!(
                "0-length response with status code: {} and content type: {content_type}",
                self.status
            ));
        }
        Ok(&self.body)
    }

    fn failure(&self) -> String {
        let body = json::decode_any_answer(&self.body, self.question).ok();
        if let Some(status) =
            body.filter(|body| body.str_at("kind") == "Status" && body.str_at("apiVersion") == "v1")
            && !status.str_at("message").is_empty()
        {
            return status.str_at("message").to_owned();
        }
        let text = match self.is_text() {
            true => self.body.get(..MAX_SHOWN).unwrap_or(&self.body).trim_ascii(),
            false => b"unknown",
        };
        server_failure(self.status, text).1
    }

    /// Whether the body is a text for people. A response without `Content-Type` is one.
    fn is_text(&self) -> bool {
        let media_type = self.content_type.split(';').next().unwrap_or_default().trim();
        media_type.is_empty() || media_type.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("text/"))
    }
}

fn no_object(found: &str) -> String {
    format!(
        "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go value of type struct {{ \
         APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_that_are_none_are_told() {
        let check_typed = |content_type: &str, status: u16, body: &'static str, expected: &str| {
            let content_type = content_type.to_owned();
            let response = Response {
                status,
                content_type,
                retry_after: None,
                body: Bytes::from_static(body.as_bytes()),
                question: 100,
            };
            let found = response.object().map(|object| object.to_string());
            assert_eq!(found.unwrap_or_else(|error| error), expected);
        };
        let check = |status, body, expected: &str| check_typed("application/json", status, body, expected);
        check(200, r#"{"a":1}"#, r#"{"a":1}"#);
        check_typed(
            "",
            204,
            "",
            "0-length response with status code: 204 and content type: application/json",
        );
        check(200, "", "0-length response with status code: 200 and content type: application/json");
        check(404, "nope", "the server could not find the requested resource");
        check(500, "boom", "an error on the server (\"unknown\") has prevented the request from succeeding");
        check(500, r#"{"kind":"Status","apiVersion":"v1","message":"mine"}"#, "mine");
        check(
            200,
            "kind: ImageReview\nstatus: {allowed: true}\n",
            r#"{"kind":"ImageReview","status":{"allowed":true}}"#,
        );
        check(200, "null", "{}");
        check(
            200,
            r#"{"a":1} x"#,
            "couldn't get version/kind; json parse error: invalid character 'x' after top-level value",
        );
        check(
            200,
            "[]",
            "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { \
             APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }",
        );
    }

    #[test]
    fn malformed_content_types_are_told() {
        for (content_type, expected) in [
            ("application/json;x", "Internal error occurred: mime: invalid media parameter"),
            ("bad type", "Internal error occurred: mime: expected slash after first token"),
        ] {
            let (content_type, body) = (content_type.to_owned(), Bytes::from_static(b"{}"));
            let response = Response { status: 200, content_type, retry_after: None, body, question: 100 };
            assert_eq!(response.object(), Err(expected.to_owned()));
        }
    }

    #[test]
    fn an_answer_takes_no_more_memory_than_its_question_allows() {
        let json = format!(r#"{{"a":[{}{{}}]}}"#, r#"{"b":0},"#.repeat(400_000));
        let yaml = format!("a:\n{}", "- {b: 0}\n".repeat(100_000));
        for body in [json, yaml] {
            let answer = |question: usize| {
                let body = Bytes::from(body.clone());
                let content_type = "application/json".to_owned();
                Response { status: 200, content_type, retry_after: None, body, question }.object()
            };
            assert_eq!(answer(1000), Err("the value takes too much memory".to_owned()));
            assert!(answer(12 << 20).is_ok());
        }
    }
}
