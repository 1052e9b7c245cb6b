//! More requests than the server was told to take.

use crate::Result;
use pintle_e2e::config;
use pintle_harness::{OTHER_TOKEN, Server};

#[test]
fn requests_above_the_limit_are_told_to_come_again_and_masters_are_not() -> Result {
    let server = Server::start(config()?.flag("--max-mutating-requests-inflight=1"))?;
    let stranger = server.client()?.with_token(OTHER_TOKEN);
    let reviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let body = r#"{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}"#;
    let length = body.len().to_string();
    let headers = [("content-type", "application/json"), ("content-length", length.as_str())];
    // One request holds the only place until its body is whole.
    let mut holder = stranger.connect()?;
    holder.send("POST", reviews, &headers, &body.as_bytes()[..10])?;
    let refused = pintle_harness::wait_for("a refusal", pintle_e2e::PATIENCE, || {
        let response = stranger.request("POST", reviews, &headers, body.as_bytes()).ok()?;
        (response.status == 429).then_some(response)
    })?;
    assert_eq!(refused.header("retry-after"), Some("1"));
    let text = refused.text();
    assert!(text.contains("Too many requests, please try again later."), "{text}");
    let master = server.client()?.request("POST", reviews, &headers, body.as_bytes())?;
    assert_eq!(master.status, 201, "{}", master.text());
    holder.write(&body.as_bytes()[10..])?;
    assert_ne!(holder.head()?.0, 429);
    Ok(())
}
