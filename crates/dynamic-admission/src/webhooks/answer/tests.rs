use super::*;
use pintle_machinery::{StatusReason, json};

fn respond(status: u16, body: &str) -> Response {
    Response {
        status,
        content_type: "application/json".to_owned(),
        retry_after: None,
        body: body.to_owned().into(),
        question: 1000,
    }
}

/// The answer of a webhook with this `response`, to a review with the uid `u`.
fn answered(version: ReviewVersion, is_mutating: bool, response: &Value) -> Result<Answer, InvalidAnswer> {
    let api_version = format!("admission.k8s.io/{}", version.name());
    let review = json!({"apiVersion": api_version, "kind": "AdmissionReview", "response": response});
    answer(&respond(200, &review.to_string()), version, "u", is_mutating)
}

fn refused(why: &str) -> InvalidAnswer {
    InvalidAnswer::Refused(why.to_owned())
}

#[test]
fn an_approval_has_warnings_annotations_and_a_patch() {
    let response = json!({
        "uid": "u", "allowed": true, "warnings": ["w"], "auditAnnotations": {"k": "v"},
        "patchType": "JSONPatch", "patch": STANDARD.encode("[]"),
    });
    let answer = answered(ReviewVersion::V1, true, &response).unwrap();
    assert!(answer.allowed && answer.status.is_null());
    assert_eq!(answer.warnings, ["w"]);
    assert_eq!(answer.audit_annotations, [("k".to_owned(), "v".to_owned())]);
    assert_eq!((answer.patch.as_slice(), answer.patch_type.as_str()), (b"[]".as_slice(), JSON_PATCH));
}

#[test]
fn bodies_that_are_no_review_are_unreadable() {
    let check = |status: u16, body: &str, expected: &str| match answer(
        &respond(status, body),
        ReviewVersion::V1,
        "u",
        true,
    ) {
        Err(InvalidAnswer::Unreadable(why)) => assert!(why.contains(expected), "{body}: {why}"),
        other => panic!("{body}: {other:?}"),
    };
    check(500, "broken", "an error on the server");
    check(200, "", "0-length response");
    check(200, "nonsense", "couldn't get version/kind");
    check(200, "{", "couldn't get version/kind; json parse error: ");
    check(
        200,
        r#"{"apiVersion": "a/b/c", "kind": "AdmissionReview"}"#,
        "unexpected GroupVersion string: a/b/c",
    );
    check(
        200,
        r#"{"apiVersion": "v1", "kind": "Pod"}"#,
        "no kind \"Pod\" is registered for version \"v1\" in scheme \"k8s.io/apiserver/pkg/util/webhook/client.go:71\"",
    );
    check(
        200,
        r#"{"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview"}"#,
        "converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion",
    );
    check(
        200,
        r#"{"apiVersion": "v1", "kind": "Status"}"#,
        "converting (v1.Status) to (v1.AdmissionReview): unknown conversion",
    );
    check(
        200,
        r#"{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {"allowed": "yes"}}"#,
        "cannot unmarshal string",
    );
}

#[test]
fn an_answer_may_be_yaml_and_leave_its_kind_to_the_question() {
    let check = |body: &str, version: ReviewVersion, allowed: Result<bool, &str>| {
        let found = answer(&respond(200, body), version, "u", true).map(|answer| answer.allowed);
        assert_eq!(found, allowed.map_err(refused), "{body}");
    };
    let yaml = "apiVersion: admission.k8s.io/v1\nkind: AdmissionReview\nresponse: {allowed: true, uid: u}\n";
    check(yaml, ReviewVersion::V1, Ok(true));
    check("---\n", ReviewVersion::V1, Err("webhook response was absent"));
    check("null", ReviewVersion::V1, Err("webhook response was absent"));
    let unversioned =
        r#"{"apiVersion": "/", "kind": "AdmissionReview", "response": {"allowed": true, "uid": "u"}}"#;
    check(unversioned, ReviewVersion::V1beta1, Ok(true));
    let expected =
        "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=AdmissionReview";
    check(unversioned, ReviewVersion::V1, Err(expected));
}

#[test]
fn answers_to_another_question_are_refused() {
    let check = |version: ReviewVersion, response: Value, expected: Option<&str>| {
        let found = answered(version, true, &response);
        assert_eq!(found.as_ref().err(), expected.map(refused).as_ref(), "{response}");
    };
    check(ReviewVersion::V1, Value::Null, Some("webhook response was absent"));
    let other = json!({"uid": "other", "allowed": true});
    check(ReviewVersion::V1, other.clone(), Some("expected response.uid=\"u\", got \"other\""));
    // The beta does not ask for it.
    check(ReviewVersion::V1beta1, other, None);
    let review = json!({"response": {"uid": "u", "allowed": true}}).to_string();
    let found = answer(&respond(200, &review), ReviewVersion::V1, "u", true);
    let expected = "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=";
    assert_eq!(found.unwrap_err(), refused(expected));
}

#[test]
fn patches_need_their_type() {
    let patch = STANDARD.encode("[]");
    let check = |is_mutating: bool, mut response: Value, expected: Option<&str>| {
        response.set("uid", "u");
        response.set("allowed", true);
        let found = answered(ReviewVersion::V1, is_mutating, &response);
        assert_eq!(found.as_ref().err(), expected.map(refused).as_ref(), "{response}");
    };
    check(true, json!({}), None);
    check(true, json!({"patch": patch, "patchType": "Other"}), None);
    check(true, json!({"patch": patch}), Some("webhook returned response.patch but not response.patchType"));
    check(
        true,
        json!({"patchType": "JSONPatch"}),
        Some("webhook returned response.patchType but not response.patch"),
    );
    check(
        true,
        json!({"patch": patch, "patchType": ""}),
        Some("webhook returned invalid response.patchType of \"\""),
    );
    check(false, json!({"patch": patch}), Some("validating webhook may not return response.patch"));
    check(
        false,
        json!({"patchType": "JSONPatch"}),
        Some("validating webhook may not return response.patchType"),
    );
    // Patches of the beta have one type, and those of validating webhooks are ignored.
    let response = json!({"allowed": true, "patch": patch});
    let answer = answered(ReviewVersion::V1beta1, true, &response).unwrap();
    assert_eq!((answer.patch.as_slice(), answer.patch_type.as_str()), (b"[]".as_slice(), JSON_PATCH));
    assert!(answered(ReviewVersion::V1beta1, false, &response).unwrap().patch.is_empty());
}

#[test]
fn denials_have_the_status_of_the_webhook_within_limits() {
    let check = |status: Value, code: u16, message: &str| {
        let denial = denial("w.example.com", &status);
        let expected = format!("admission webhook \"w.example.com\" denied the request{message}");
        assert_eq!((denial.code, denial.message), (code, expected), "{status}");
    };
    check(Value::Null, 400, " without explanation");
    check(json!({"reason": "Because"}), 400, ": Because");
    check(json!({"message": "no", "reason": "Because", "code": 409}), 409, ": no");
    check(json!({"message": "no", "code": 200}), 400, ": no");
    check(json!({"message": "no", "code": 100_000}), 500, ": no");
    check(json!({"message": "no", "code": -1}), 400, ": no");
    let status = json!({"details": {"name": "n", "causes": [{"message": "c"}], "retryAfterSeconds": -1}});
    let details = denial("w", &status).details.unwrap();
    assert_eq!((details.name.as_str(), details.causes[0].message.as_str()), ("n", "c"));
    assert_eq!(details.retry_after_seconds, -1);
    let metadata = json!({"continue": "c", "remainingItemCount": 3});
    assert_eq!(denial("w", &json!({"metadata": metadata})).to_value().at("metadata"), Some(&metadata));
    assert_eq!(denial("w", &Value::Null).to_value().at("metadata"), Some(&json!({})));
    assert_eq!(denial("w", &json!({"reason": "Conflict", "code": 409})).reason, StatusReason::Unknown);
}
