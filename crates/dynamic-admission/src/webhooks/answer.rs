//! Reads and verifies the answer of a webhook
//! (<https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#response>).

use super::review::ReviewVersion;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pintle_go_forms::quote;
use pintle_machinery::{Status, StatusCause, StatusDetails, Value, ValueExt, json, status::AnsweredStatus};
use pintle_schema::{Schema, SchemaRef};
use pintle_webhook::{Response, TypedReview};
use std::sync::LazyLock;

/// The verified answer of a webhook.
#[derive(Debug)]
pub struct Answer {
    pub(super) allowed: bool,
    /// The `Status` of a refusal; null if there is none.
    pub(super) status: Value,
    pub(super) warnings: Vec<String>,
    pub(super) audit_annotations: Vec<(String, String)>,
    /// The text of the patch; empty if there is none.
    pub(super) patch: Vec<u8>,
    /// The type of the patch, as the webhook names it.
    pub(super) patch_type: String,
}

impl Answer {
    /// Whether the webhook admits the request.
    pub fn is_allowed(&self) -> bool {
        self.allowed
    }

    /// The `Status` with which this webhook refuses the request; `None` if it admits it.
    pub fn denial(&self, webhook: &str) -> Option<Status> {
        (!self.allowed).then(|| denial(webhook, &self.status))
    }
}

/// The reason why an answer is none.
#[derive(Debug, PartialEq, Eq)]
pub enum InvalidAnswer {
    /// The response is no review of the version that was sent.
    Unreadable(String),
    /// The review does not belong to the request, or contradicts itself.
    Refused(String),
}

/// The type of the patches of webhooks.
pub(super) const JSON_PATCH: &str = "JSONPatch";
const GROUP: &str = "admission.k8s.io";
const KIND: &str = "AdmissionReview";
const REVIEW: TypedReview =
    TypedReview { group: GROUP, kind: KIND, versions: &["v1", "v1beta1"], siblings: &[] };

/// Reads the answer to the review with this version and uid. Only the answer of a mutating webhook has a patch.
///
/// # Errors
/// [`InvalidAnswer`] with the reference's text.
pub fn answer(
    response: &Response,
    version: ReviewVersion,
    uid: &str,
    is_mutating: bool,
) -> Result<Answer, InvalidAnswer> {
    let review = read(response, version).map_err(InvalidAnswer::Unreadable)?;
    verify(&review, version, uid, is_mutating).map_err(InvalidAnswer::Refused)
}

fn read(response: &Response, version: ReviewVersion) -> Result<Value, String> {
    let Some(schema) = schema(version) else {
        return Err(format!("no schema of {KIND}"));
    };
    REVIEW.read(response, version.name(), schema)
}

fn schema(version: ReviewVersion) -> Option<SchemaRef<'static>> {
    static V1: LazyLock<Option<SchemaRef<'static>>> =
        LazyLock::new(|| Schema::builtin().by_type_name("k8s.io/api/admission/v1.AdmissionReview"));
    static V1BETA1: LazyLock<Option<SchemaRef<'static>>> =
        LazyLock::new(|| Schema::builtin().by_type_name("k8s.io/api/admission/v1beta1.AdmissionReview"));
    match version {
        ReviewVersion::V1 => *V1,
        ReviewVersion::V1beta1 => *V1BETA1,
    }
}

fn verify(review: &Value, version: ReviewVersion, uid: &str, is_mutating: bool) -> Result<Answer, String> {
    let Some(response) = review.at("response") else {
        return Err("webhook response was absent".to_owned());
    };
    let patch = STANDARD.decode(response.str_at("patch")).map_err(|error| error.to_string())?;
    let patch_type = response.at("patchType").and_then(Value::as_str);
    let (patch, patch_type) = match version {
        ReviewVersion::V1 => {
            verify_identity(review, response, uid)?;
            verify_patch_type(&patch, patch_type, is_mutating)?;
            (patch, patch_type.unwrap_or_default())
        }
        // Its answers need neither uid nor kind, and have patches of one type only.
        ReviewVersion::V1beta1 if is_mutating && !patch.is_empty() => (patch, JSON_PATCH),
        ReviewVersion::V1beta1 => (Vec::new(), ""),
    };
    let warnings = response.items_at("warnings").iter().filter_map(Value::as_str).map(str::to_owned);
    let annotations = response.map_at("auditAnnotations").iter();
    let annotations =
        annotations.map(|(key, value)| (key.to_string(), value.as_str().unwrap_or_default().to_owned()));
    Ok(Answer {
        allowed: response.bool_at("allowed"),
        status: response.at("status").cloned().unwrap_or_default(),
        warnings: warnings.collect(),
        audit_annotations: annotations.collect(),
        patch,
        patch_type: patch_type.to_owned(),
    })
}

fn verify_identity(review: &Value, response: &Value, uid: &str) -> Result<(), String> {
    let found = response.str_at("uid");
    if found != uid {
        return Err(format!("expected response.uid={}, got {}", quote(uid), quote(found)));
    }
    let (api_version, kind) = (review.str_at("apiVersion"), review.str_at("kind"));
    let expected = format!("{GROUP}/v1");
    if (api_version, kind) != (expected.as_str(), KIND) {
        let api_version = if api_version.is_empty() { "/" } else { api_version };
        return Err(format!(
            "expected webhook response of {expected}, Kind={KIND}, got {api_version}, Kind={kind}"
        ));
    }
    Ok(())
}

fn verify_patch_type(patch: &[u8], patch_type: Option<&str>, is_mutating: bool) -> Result<(), String> {
    let refused = |why: &str| Err(why.to_owned());
    match (patch.is_empty(), patch_type) {
        (false, _) if !is_mutating => refused("validating webhook may not return response.patch"),
        (_, Some(_)) if !is_mutating => refused("validating webhook may not return response.patchType"),
        (false, None) => refused("webhook returned response.patch but not response.patchType"),
        (true, Some(_)) => refused("webhook returned response.patchType but not response.patch"),
        (false, Some("")) => refused("webhook returned invalid response.patchType of \"\""),
        _ => Ok(()),
    }
}

/// The `Status` of a refusal. Reason, details and code are the webhook's, if the code is one of a failure.
fn denial(webhook: &str, status: &Value) -> Status {
    const BAD_REQUEST: i64 = 400;
    /// The largest code that HTTP has room for.
    const MAX_CODE: i64 = 999;
    let code = match status.i64_at("code").unwrap_or_default() {
        code if code < BAD_REQUEST => BAD_REQUEST,
        code if code > MAX_CODE => 500,
        code => code,
    };
    let by = format!("admission webhook {} denied the request", quote(webhook));
    let message = match (status.str_at("message"), status.str_at("reason")) {
        ("", "") => format!("{by} without explanation"),
        ("", reason) => format!("{by}: {reason}"),
        (message, _) => format!("{by}: {message}"),
    };
    let outcome = match status.str_at("status") {
        "" | "Success" => "Failure",
        other => other,
    };
    let answered = AnsweredStatus {
        reason: status.str_at("reason").to_owned(),
        status: outcome.to_owned(),
        metadata: status.at("metadata").cloned().unwrap_or_else(|| json!({})),
    };
    let mut denial = Status::answered(u16::try_from(code).unwrap_or(500), answered, message);
    denial.details = status.at("details").map(details);
    denial
}

fn details(details: &Value) -> StatusDetails {
    let text = |path: &str| details.str_at(path).to_owned();
    let causes = details.items_at("causes").iter().map(|cause| StatusCause {
        reason: cause.str_at("reason").to_owned(),
        message: cause.str_at("message").to_owned(),
        field: cause.str_at("field").to_owned(),
    });
    let retry_after = details.i64_at("retryAfterSeconds").unwrap_or_default();
    StatusDetails {
        name: text("name"),
        group: text("group"),
        kind: text("kind"),
        uid: text("uid"),
        causes: causes.collect(),
        retry_after_seconds: i32::try_from(retry_after).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests;
