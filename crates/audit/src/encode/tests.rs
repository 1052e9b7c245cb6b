use super::*;
use crate::{ObjectReference, ResponseStatus, Stage};
use pintle_machinery::{StatusCause, StatusDetails, UserInfo};
use std::{collections::BTreeMap, sync::Arc};

fn event() -> Event {
    let user = UserInfo {
        name: "tester".to_owned(),
        uid: "1".to_owned(),
        groups: vec!["system:masters".to_owned(), "system:authenticated".to_owned()],
        ..UserInfo::default()
    };
    let time = "2026-11-21T13:35:22.993282Z".parse().unwrap();
    Event {
        level: Level::RequestResponse,
        audit_id: "t-create".to_owned(),
        stage: Stage::RequestReceived,
        request_uri: "/api/v1/namespaces/default/configmaps".to_owned(),
        verb: "create".to_owned(),
        user: Some(Arc::new(user)),
        impersonated_user: None,
        impersonation_constraint: String::new(),
        source_ips: vec!["127.0.0.1".parse().unwrap()],
        user_agent: "audit-test/1".to_owned(),
        object_ref: Some(ObjectReference {
            resource: "configmaps".to_owned(),
            namespace: "default".to_owned(),
            api_version: "v1".to_owned(),
            ..ObjectReference::default()
        }),
        response_status: None,
        request_object: None,
        response_object: None,
        request_received: time,
        stage_time: time,
        annotations: BTreeMap::new(),
    }
}

fn json(event: &Event) -> String {
    String::from_utf8(encode(event, &describe(event), Objects::With)).unwrap()
}

/// The expected texts are those of the reference.
#[test]
fn events_are_written_as_the_reference_writes_them() {
    let mut event = event();
    assert_eq!(
        json(&event),
        "{\"kind\":\"Event\",\"apiVersion\":\"audit.k8s.io/v1\",\"level\":\"RequestResponse\",\"auditID\":\"t-create\",\
         \"stage\":\"RequestReceived\",\"requestURI\":\"/api/v1/namespaces/default/configmaps\",\"verb\":\"create\",\
         \"user\":{\"username\":\"tester\",\"uid\":\"1\",\"groups\":[\"system:masters\",\"system:authenticated\"]},\
         \"sourceIPs\":[\"127.0.0.1\"],\"userAgent\":\"audit-test/1\",\"objectRef\":{\"resource\":\"configmaps\",\
         \"namespace\":\"default\",\"apiVersion\":\"v1\"},\"requestReceivedTimestamp\":\"2026-11-21T13:35:22.993282Z\",\
         \"stageTimestamp\":\"2026-11-21T13:35:22.993282Z\"}\n"
    );
    event.stage = Stage::ResponseComplete;
    event.impersonated_user = Some(Arc::new(UserInfo {
        name: "jane".to_owned(),
        groups: vec!["devs".to_owned()],
        extra: [("scope".to_owned(), vec!["a".to_owned()])].into(),
        ..UserInfo::default()
    }));
    event.impersonation_constraint = "impersonate:user-info".to_owned();
    event.response_status = Some(ResponseStatus {
        status: "Failure".into(),
        message: "configmaps \"aud-1\" already exists".into(),
        reason: "AlreadyExists".into(),
        details: Some(StatusDetails {
            name: "aud-1".to_owned(),
            kind: "configmaps".to_owned(),
            ..StatusDetails::default()
        }),
        code: 409,
    });
    event.request_object = Some(Bytes::from_static(br#"{"data":{"a":"\u003cb\u003e"}}"#));
    event.response_object = Some(Bytes::from_static(br#"{"kind":"Status"}"#));
    event.annotations.insert("authorization.k8s.io/reason".into(), "".into());
    event.annotations.insert("authorization.k8s.io/decision".into(), "allow".into());
    let text = json(&event);
    let (_, text) = text.split_once("authenticated\"]},").unwrap();
    assert_eq!(
        text,
        "\"impersonatedUser\":{\"username\":\"jane\",\"groups\":[\"devs\"],\"extra\":{\"scope\":[\"a\"]}},\
         \"authenticationMetadata\":{\"impersonationConstraint\":\"impersonate:user-info\"},\"sourceIPs\":[\"127.0.0.1\"],\
         \"userAgent\":\"audit-test/1\",\"objectRef\":{\"resource\":\"configmaps\",\"namespace\":\"default\",\
         \"apiVersion\":\"v1\"},\"responseStatus\":{\"metadata\":{},\"status\":\"Failure\",\
         \"message\":\"configmaps \\\"aud-1\\\" already exists\",\"reason\":\"AlreadyExists\",\
         \"details\":{\"name\":\"aud-1\",\"kind\":\"configmaps\"},\"code\":409},\
         \"requestObject\":{\"data\":{\"a\":\"\\u003cb\\u003e\"}},\"responseObject\":{\"kind\":\"Status\"},\
         \"requestReceivedTimestamp\":\"2026-11-21T13:35:22.993282Z\",\
         \"stageTimestamp\":\"2026-11-21T13:35:22.993282Z\",\"annotations\":{\"authorization.k8s.io/decision\":\"allow\",\
         \"authorization.k8s.io/reason\":\"\"}}\n"
    );
    event.user = None;
    assert!(json(&event).contains(r#""user":{},"#));
}

#[test]
fn texts_have_gos_escapes_and_addresses_their_own_form() {
    let mut event = event();
    event.verb = "<&>\u{2028}\u{8}\u{1}é".to_owned();
    event.source_ips = vec!["::ffff:10.0.0.1".parse().unwrap(), "fd00::1".parse().unwrap()];
    let cause = StatusCause {
        reason: "FieldValueInvalid".to_owned(),
        field: "spec.a".to_owned(),
        ..StatusCause::default()
    };
    event.response_status = Some(ResponseStatus {
        details: Some(StatusDetails {
            causes: vec![cause],
            retry_after_seconds: 1,
            ..StatusDetails::default()
        }),
        ..ResponseStatus::default()
    });
    let text = json(&event);
    for expected in [
        "\"verb\":\"\\u003c\\u0026\\u003e\\u2028\\b\\u0001é\",",
        "\"sourceIPs\":[\"10.0.0.1\",\"fd00::1\"],",
        "\"responseStatus\":{\"metadata\":{},\"details\":{\"causes\":[{\"reason\":\"FieldValueInvalid\",\"field\":\"spec.a\"}],\
         \"retryAfterSeconds\":1}},",
    ] {
        assert!(text.contains(expected), "{expected} is not in {text}");
    }
}

#[test]
fn what_is_too_long_loses_its_objects_and_says_so() {
    let mut event = event();
    event.request_object = Some(Bytes::from(format!("\"{}\"", "x".repeat(5000))));
    event.annotations.insert("b.example.com".into(), "c".into());
    let encoded = Encoded::new(&event, &describe(&event), false, Some(2000));
    let truncated = String::from_utf8(encoded.truncated.unwrap().to_vec()).unwrap();
    assert!(!truncated.contains("requestObject"), "{truncated}");
    assert!(
        truncated
            .ends_with("\"annotations\":{\"audit.k8s.io/truncated\":\"true\",\"b.example.com\":\"c\"}}\n"),
        "{truncated}"
    );
    assert!(Encoded::new(&event, &describe(&event), false, Some(20_000)).truncated.is_none());
    event.level = Level::Metadata;
    assert!(Encoded::new(&event, &describe(&event), false, Some(2000)).truncated.is_none());
}

#[test]
fn lists_of_events_have_no_kinds_within() {
    let one = Encoded::new(&event(), &describe(&event()), false, None).json;
    let list = event_list(&[one.clone(), one]);
    let list: pintle_machinery::Value = serde_json::from_slice(&list).unwrap();
    assert_eq!(list["kind"], "EventList");
    assert_eq!(list["items"].as_array().unwrap().len(), 2);
    assert_eq!(list["items"][1]["auditID"], "t-create");
    assert!(list["items"][0].get("kind").is_none());
}

#[test]
fn the_legacy_line_says_less() {
    let mut event = event();
    assert_eq!(
        legacy_line(&event),
        "2026-11-21T13:35:22.993282Z AUDIT: id=\"t-create\" stage=\"RequestReceived\" ip=\"127.0.0.1\" method=\"create\" \
         user=\"tester\" groups=\"\\\"system:masters\\\",\\\"system:authenticated\\\"\" as=\"<self>\" asgroups=\"<lookup>\" \
         user-agent=\"audit-test/1\" namespace=\"default\" uri=\"/api/v1/namespaces/default/configmaps\" \
         response=\"<deferred>\"\n"
    );
    event.user = None;
    event.source_ips.clear();
    event.object_ref = None;
    event.response_status = Some(ResponseStatus { code: 401, ..ResponseStatus::default() });
    let line = legacy_line(&event);
    assert!(line.contains("ip=\"<unknown>\" method=\"create\" user=\"<none>\" groups=\"<none>\""), "{line}");
    assert!(
        line.ends_with(
            "namespace=\"<none>\" uri=\"/api/v1/namespaces/default/configmaps\" response=\"401\"\n"
        )
    );
}
