use super::*;
use crate::webhooks::clients::WebhookClients;
use pintle_admission::{Operation, testing::Request};
use pintle_admission_cel::Compiler;
use pintle_machinery::json;

/// Calls a webhook with these fields that has no address; returns the failure and its code for metrics.
fn failure(fields: pintle_machinery::Value, is_dry_run: bool) -> (String, u16) {
    let webhook = Webhook::new("c/w/0".to_owned(), "c", &fields, &Compiler::new(), &WebhookClients::unused());
    let mut request = Request::new(Operation::Create, "", "v1", "things", "ns");
    request.dry_run = is_dry_run;
    let own = request.endpoint();
    request.with(async |request| {
        let targets = Targets::new(&own, &Vec::new);
        let mut notes = Notes::default();
        let called = call(&webhook, request, &targets, &own, &Objects::default(), true, &mut notes).await;
        match called {
            Err(CallFailure::Calling { reason, code }) => (reason, code),
            Err(CallFailure::Internal(status) | CallFailure::Rejected(status)) => {
                (status.message, status.code)
            }
            Ok(answer) => panic!("{answer:?}"),
        }
    })
}

#[test]
fn webhooks_with_side_effects_are_not_called_for_dry_runs() {
    let refused = ("admission webhook \"w.example.com\" does not support dry run".to_owned(), 400);
    let passed =
        ("could not get REST client: webhook configuration must have either service or URL".to_owned(), 500);
    for (side_effects, expected) in [
        ("None", &passed),
        ("NoneOnDryRun", &passed),
        ("Some", &refused),
        ("Unknown", &refused),
        ("", &refused),
    ] {
        let fields = json!({
            "name": "w.example.com", "sideEffects": side_effects, "admissionReviewVersions": ["v1"], "clientConfig": {},
        });
        assert_eq!(failure(fields.clone(), true), *expected, "{side_effects}");
        assert_eq!(failure(fields, false), passed, "{side_effects}");
    }
}

#[test]
fn webhooks_that_know_no_version_fail() {
    let (reason, code) = failure(json!({"name": "w", "admissionReviewVersions": ["v7"]}), false);
    assert_eq!(
        (reason.as_str(), code),
        (
            "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)",
            400
        )
    );
}

#[test]
fn only_annotations_with_a_valid_key_are_kept() {
    let request = Request::new(Operation::Create, "", "v1", "things", "ns");
    let annotations = ["w.example.com/key", "w.example.com/a/b", "w.example.com/", "key"];
    let kept: Vec<String> = request.with(async |request| {
        let annotations = annotations.map(|key| (key.to_owned(), "v".to_owned())).to_vec();
        Notes { warnings: vec!["w".to_owned()], annotations }.add_to(request);
        assert_eq!(request.warnings, ["w"]);
        request.audit_annotations.iter().map(|(key, _)| key.clone().into_owned()).collect()
    });
    assert_eq!(kept, ["w.example.com/key"]);
}

#[test]
fn calls_take_no_longer_than_their_request() {
    let fields = json!({"name": "w", "timeoutSeconds": 10});
    let webhook = Webhook::new("c/w/0".to_owned(), "c", &fields, &Compiler::new(), &WebhookClients::unused());
    let (now, seconds) = (Instant::now(), Duration::from_secs);
    assert_eq!(timeout(&webhook, None), seconds(10));
    assert_eq!(timeout(&webhook, Some(now + seconds(100))), seconds(10));
    assert!(timeout(&webhook, Some(now + seconds(5))) <= seconds(5));
    assert_eq!(timeout(&webhook, Some(now)), Duration::ZERO);
    assert_eq!(whole_seconds(Duration::from_millis(4_001)), seconds(5));
    assert_eq!(whole_seconds(seconds(4)), seconds(4));
    let check = |deadline: Option<Instant>, client_is_gone: bool, expected: Result<(), &str>| {
        let mut request = Request::new(Operation::Create, "", "v1", "things", "ns");
        (request.deadline, request.client_is_gone) = (deadline, client_is_gone);
        let found = request.with(async |request| check_end(request)).map_err(|status| status.message);
        assert_eq!(found, expected.map_err(str::to_owned));
    };
    check(None, false, Ok(()));
    check(Some(now + seconds(100)), false, Ok(()));
    check(None, true, Err("Timeout: request did not complete within requested timeout - context canceled"));
    check(
        Some(now),
        false,
        Err("Timeout: request did not complete within requested timeout - context deadline exceeded"),
    );
}
