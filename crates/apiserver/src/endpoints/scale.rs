//! Serves the `scale` subresource: `autoscaling/v1` `Scale` of any kind that declares the path of its replicas
//! (<https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md>).

mod answer;
mod view;
mod write;

use self::{
    answer::Answer,
    view::{scale_kind, scale_of, scale_schema},
    write::{Change, write},
};
use super::{
    apply::Configuration,
    body_kind::BodyKind,
    decode::decode,
    get::freshness,
    patch::{Patch, PatchBody},
    request_scope::RequestScope,
    write::{check_name, set_namespace},
};
use crate::base::{body::RequestBody, response::Response};
use crate::metrics::BodyVerb;
use pintle_go_forms::quote;
use pintle_machinery::{Status, options::WriteOptions};
use pintle_registry::{ScalePaths, ScaleValues};

/// Serves a GET of a scale.
///
/// # Errors
/// The `Status` for the client.
pub(super) async fn get(scope: &RequestScope<'_>) -> Result<Response, Status> {
    let answer = Answer::new(scope)?;
    scope.check_export()?;
    let store = scope.store()?;
    let namespace = if store.resource().is_namespaced() { scope.info.namespace.as_str() } else { "" };
    let key = store.object_key(namespace, &scope.info.name)?;
    let object = store.find(&key, freshness(scope, store)?).await?;
    let object = object
        .ok_or_else(|| Status::not_found(&scope.resource.resource.group_resource(), &scope.info.name))?;
    let tree = store.version_tree(&object.json()).await?;
    let (scale, is_found) = scale_of(&tree, answer.paths).map_err(Status::unknown)?;
    if !is_found {
        let path = quote(&format!(".{}", answer.paths.spec_replicas));
        return Err(Status::internal_error(format!("the spec replicas field {path} does not exist")));
    }
    answer.respond(scope, &scale)
}

/// Serves a PUT of a scale.
///
/// # Errors
/// The `Status` for the client.
pub(super) async fn update(scope: &RequestScope<'_>, body: RequestBody) -> Result<Response, Status> {
    let answer = Answer::new(scope)?;
    let body = scope.read_body(body, BodyVerb::Update).await?;
    let options = WriteOptions::parse(scope.query.pairs(), "UpdateOptions")?;
    let kind = scale_kind();
    let wanted = BodyKind::built_in(&kind, scale_schema()?);
    let mut scale = decode(scope, &body, wanted, options.field_validation.unwrap_or_default())
        .map_err(|status| undecodable(status, answer.paths))?;
    scope.note_body(&scale, scale_schema()?);
    set_namespace(scope, &mut scale)?;
    check_name(&scale, &scope.info.name)?;
    let change = Change::Put(scale);
    let written = write(scope, answer.paths, &options, change).await?;
    let (scale, _) = scale_of(&written.object, answer.paths).map_err(Status::bad_request)?;
    answer.respond(scope, &scale)
}

/// The error for a body that is no scale. For custom resources it does not tell why: their scheme does not know the type,
/// which hides the decoder's error.
fn undecodable(status: Status, paths: &ScalePaths) -> Status {
    const UNKNOWN: &str = "no kind is registered for the type v1.Scale in scheme \
                           \"k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go:781\"";
    match (status.code, paths.values) {
        (400, ScaleValues::Any) => Status::bad_request(UNKNOWN),
        _ => status,
    }
}

/// Serves a PATCH of a scale.
///
/// # Errors
/// The `Status` for the client.
pub(super) async fn patch(scope: &RequestScope<'_>, body: RequestBody) -> Result<Response, Status> {
    let kind = PatchBody::of(scope)?;
    let answer = Answer::new(scope)?;
    let body = scope.read_body(body, BodyVerb::Patch).await?;
    let options = match kind {
        PatchBody::Configuration(_) => WriteOptions::parse_apply(scope.query.pairs())?,
        PatchBody::Document(_) => WriteOptions::parse(scope.query.pairs(), "PatchOptions")?,
    };
    scope.note_patch(&body);
    let change = match kind {
        PatchBody::Configuration(media_type) => Change::Apply(Configuration::parse(&body, media_type)?),
        PatchBody::Document(format) => Change::Patch(Patch::parse(format, &body)),
    };
    let written = write(scope, answer.paths, &options, change).await?;
    let (scale, _) = scale_of(&written.object, answer.paths).map_err(Status::bad_request)?;
    answer.respond(scope, &scale)
}

#[cfg(test)]
mod tests {
    use super::{super::testing::TestServer, *};
    use http::header;
    use pintle_machinery::{Value, json};

    const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

    #[tokio::test]
    async fn a_scale_shows_and_changes_the_replicas() {
        let server = TestServer::start().await;
        let deployment = json!({
            "metadata": {"name": "web"},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}},
        });
        assert_eq!(server.send("POST", DEPLOYMENTS, deployment).await.0, 201);
        let uri = format!("{DEPLOYMENTS}/web/scale");
        let (code, scale) = server.send("GET", &uri, json!(null)).await;
        assert_eq!((code, &scale["kind"], &scale["spec"]), (200, &json!("Scale"), &json!({"replicas": 2})));
        assert_eq!(scale["status"]["selector"], "app=web");
        let mut wanted = scale;
        wanted["spec"]["replicas"] = json!(5);
        let (code, scale) = server.send("PUT", &uri, wanted).await;
        assert_eq!((code, &scale["spec"]), (200, &json!({"replicas": 5})));
        assert_eq!(server.send("GET", &format!("{uri}?resourceVersion=x"), json!(null)).await.0, 500);
        let patch = json!({"metadata": {"uid": "x"}, "spec": {"replicas": 6}});
        let (code, status) = server.send_as("PATCH", &uri, "application/merge-patch+json", patch).await;
        assert_eq!((code, &status["details"]["kind"]), (409, &json!("deployments/scale")));
        let patch = json!({"spec": {"replicas": -1}});
        let (code, status) = server.send_as("PATCH", &uri, "application/merge-patch+json", patch).await;
        assert_eq!((code, &status["reason"]), (422, &json!("Invalid")));
        let patch = json!({"metadata": {"finalizers": ["x"]}, "spec": {"replicas": -1}});
        let (_, status) = server.send_as("PATCH", &uri, "application/merge-patch+json", patch).await;
        let message = "Scale.autoscaling \"web\" is invalid: [metadata.finalizers[0]: Invalid value: \"x\": name is \
                       neither a standard finalizer name nor is it fully qualified, spec.replicas: Invalid value: -1: \
                       must be greater than or equal to 0]";
        assert_eq!(status["message"], message);
        let (_, deployment) = server.send("GET", &format!("{DEPLOYMENTS}/web"), json!(null)).await;
        assert_eq!(deployment["spec"]["replicas"], 5);
    }

    #[tokio::test]
    async fn a_patched_scale_that_does_not_decode_is_shown_in_the_error() {
        let server = TestServer::start().await;
        let deployment = json!({"metadata": {"name": "web"}, "spec": {"replicas": 2}});
        assert_eq!(server.send("POST", DEPLOYMENTS, deployment).await.0, 201);
        let patch = json!({"spec": {"replicas": "x"}});
        let uri = format!("{DEPLOYMENTS}/web/scale");
        let (code, status) = server.send_as("PATCH", &uri, "application/merge-patch+json", patch).await;
        assert_eq!((code, &status["details"]["kind"]), (422, &json!(null)), "{status}");
        let cause = &status["details"]["causes"][0];
        let message = cause["message"].as_str().unwrap_or_default();
        assert_eq!(cause["field"], "patch");
        assert!(
            message.starts_with(r#"Invalid value: "{\"apiVersion\":\"autoscaling/v1\",\"kind\":\"Scale\""#),
            "{message}"
        );
        assert!(
            message.ends_with(
                r#""spec\":{\"replicas\":\"x\"},\"status\":{\"replicas\":0}}": json: cannot unmarshal string into Go struct field ScaleSpec.spec.replicas of type int32"#
            ),
            "{message}"
        );
    }

    #[test]
    fn the_scale_of_a_custom_resource_hides_why_it_does_not_decode() {
        let error = |values, status| {
            let paths = ScalePaths {
                spec_replicas: String::new(),
                status_replicas: String::new(),
                selector: None,
                values,
                table: std::sync::Arc::new(pintle_registry::DefaultTable),
            };
            let status = undecodable(status, &paths);
            (
                status.code,
                status.message.starts_with("no kind is registered for the type v1.Scale in scheme "),
            )
        };
        assert_eq!(error(ScaleValues::Any, Status::bad_request("why")), (400, true));
        assert_eq!(error(ScaleValues::Any, Status::unsupported_media_type("why")), (415, false));
        assert_eq!(error(ScaleValues::Typed, Status::bad_request("why")), (400, false));
    }

    #[tokio::test]
    async fn the_namespace_of_a_scale_is_that_of_the_path() {
        let server = TestServer::start().await;
        let deployment = json!({"metadata": {"name": "web"}, "spec": {"replicas": 2}});
        assert_eq!(server.send("POST", DEPLOYMENTS, deployment).await.0, 201);
        let uri = format!("{DEPLOYMENTS}/web/scale");
        let elsewhere = json!({"metadata": {"name": "other", "namespace": "other"}, "spec": {"replicas": 3}});
        let message = "the namespace of the provided object does not match the namespace sent on the request";
        let (code, status) = server.send("PUT", &uri, elsewhere.clone()).await;
        assert_eq!((code, status["message"].as_str()), (400, Some(message)));
        let (code, status) = server.send_as("PATCH", &uri, "application/merge-patch+json", elsewhere).await;
        assert_eq!((code, status["message"].as_str()), (400, Some(message)));
    }

    #[tokio::test]
    async fn a_scale_of_another_kind_is_decoded_as_that_kind() {
        let server = TestServer::start().await;
        let deployment = json!({"metadata": {"name": "web"}, "spec": {"replicas": 2}});
        assert_eq!(server.send("POST", DEPLOYMENTS, deployment).await.0, 201);
        let check = async |spec: Value, why: &str| {
            let body = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec});
            let (code, status) = server.send("PUT", &format!("{DEPLOYMENTS}/web/scale"), body).await;
            let message = format!("Deployment in version \"v1\" cannot be handled as a Scale: {why}");
            assert_eq!((code, &status["message"]), (400, &json!(message)));
        };
        check(json!({}), "converting (v1.Deployment) to (autoscaling.Scale): unknown conversion").await;
        let why =
            "json: cannot unmarshal array into Go struct field Deployment.spec of type v1.DeploymentSpec";
        check(json!([]), why).await;
    }

    #[tokio::test]
    async fn the_form_of_the_response_is_checked_before_the_options() {
        let server = TestServer::start().await;
        let uri = format!("{DEPLOYMENTS}/web/scale?dryRun=all");
        for (method, content_type) in [("PUT", "application/json"), ("PATCH", "application/merge-patch+json")]
        {
            let headers = [(header::ACCEPT, "image/png"), (header::CONTENT_TYPE, content_type)];
            let response = server.respond_with(method, &uri, &headers, "{}").await;
            assert_eq!(response.status(), 406, "{method}");
        }
    }
}
