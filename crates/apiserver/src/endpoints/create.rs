//! Serves creates.

use super::{
    admission::Admission,
    body_kind::BodyKind,
    decode::decode,
    request_scope::RequestScope,
    write::{DedupTime, dedup_owner_references, encoder, respond, set_namespace},
};
use crate::base::{body::RequestBody, negotiation::content_type, response::Response};
use crate::metrics::BodyVerb;
use pintle_admission::{Operation, RequestOptions};
use pintle_machinery::{Status, ValueExt, meta::ObjectMeta, options::WriteOptions};
use pintle_telemetry::event;

/// Serves a POST to a collection.
///
/// # Errors
/// The `Status` for the client.
pub(super) async fn create(scope: &RequestScope<'_>, body: RequestBody) -> Result<Response, Status> {
    let encoder = encoder(scope)?;
    content_type(scope.headers, scope.server.media_types)?;
    let body = scope.read_body(body, BodyVerb::Create).await?;
    let options = WriteOptions::parse(scope.query.pairs(), "CreateOptions")?;
    let resource = &scope.resource.resource;
    let kind = resource.group_version_kind();
    event!("About to convert to expected version");
    let object = decode(
        scope,
        &body,
        BodyKind::of(scope.resource, &kind),
        options.field_validation.unwrap_or_default(),
    )?;
    scope.note_object(&object);
    let mut object = scope.resource.to_storage(object);
    event!("Conversion done");
    set_namespace(scope, &mut object)?;
    dedup_owner_references(scope, &mut object, DedupTime::OfBody);
    let store = scope.store()?;
    scope.empty_fields.note_labels(&object);
    store.set_defaults_of_body(&mut object, &scope.empty_fields);
    // These fields are set by the server alone and have no field manager.
    object.remove_at("metadata.deletionTimestamp");
    object.remove_at("metadata.deletionGracePeriodSeconds");
    object.remove_at("metadata.selfLink");
    scope.managed_write(&options.field_manager).update(None, &mut object).await;
    let context = scope.context(options.dry_run);
    let name = object.name().to_owned();
    let admission = Admission {
        scope,
        operation: Operation::Create,
        name: &name,
        kind: &kind,
        context: &context,
        options: RequestOptions::Write(&options),
    };
    let object = admission.admit(object, None).await?;
    event!("About to store object in database");
    let written = store.create(&context, object, &admission, &scope.warnings).await?;
    event!("Write to database call succeeded", "len" = body.len() as u64);
    respond(&encoder, 201, written)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{CONFIG_MAPS, TestServer, WIDGETS, config_map};
    use http::header::{ACCEPT, CONTENT_TYPE};
    use http_body_util::BodyExt;
    use pintle_machinery::{Value, json};

    #[tokio::test]
    async fn a_created_object_has_the_metadata_of_the_server() {
        let server = TestServer::start().await;
        let object = server.create_config_map("a", "x").await;
        let metadata = &object["metadata"];
        assert_eq!((&metadata["namespace"], &metadata["name"]), (&json!("default"), &json!("a")));
        assert_eq!(metadata["managedFields"][0]["operation"], "Update");
        assert!(metadata["uid"].is_string() && metadata["creationTimestamp"].is_string());
    }

    #[tokio::test]
    async fn a_dry_run_stores_nothing() {
        let server = TestServer::start().await;
        let uri = format!("{CONFIG_MAPS}?dryRun=All");
        assert_eq!(server.send("POST", &uri, config_map("a", "x")).await.0, 201);
        assert_eq!(server.send("GET", &format!("{CONFIG_MAPS}/a"), json!(null)).await.0, 404);
        let table = (ACCEPT, "application/json;as=Table;v=v1;g=meta.k8s.io");
        let headers = [(CONTENT_TYPE, "application/json"), table];
        let response = server.respond_with("POST", &uri, &headers, &config_map("a", "x").to_string()).await;
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let table: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(table["metadata"], json!({}), "a dry run has no resourceVersion");
    }

    #[tokio::test]
    async fn the_media_type_is_checked_before_the_options() {
        let server = TestServer::start().await;
        let uri = format!("{CONFIG_MAPS}?dryRun=x");
        for (media_type, code) in [("text/plain", 415), ("application/json", 422)] {
            let response = server.respond("POST", &uri, media_type, "{}").await;
            assert_eq!(response.status().as_u16(), code, "{media_type}");
        }
    }

    #[tokio::test]
    async fn the_body_is_read_before_the_options() {
        let server = TestServer::start().await;
        let large = "x".repeat(3 * 1024 * 1024 + 1);
        let named = format!("{CONFIG_MAPS}/a?dryRun=x");
        for (method, uri, media_type) in [
            ("POST", &format!("{CONFIG_MAPS}?dryRun=x"), "application/json"),
            ("PUT", &named, "application/json"),
            ("PATCH", &named, "application/merge-patch+json"),
            ("PATCH", &named, "application/apply-patch+yaml"),
        ] {
            for (body, code) in [(large.as_str(), 413), ("{", 422)] {
                let response = server.respond(method, uri, media_type, body).await;
                assert_eq!(response.status().as_u16(), code, "{method} {media_type}");
            }
        }
    }

    #[tokio::test]
    async fn objects_that_do_not_belong_to_the_path_are_rejected() {
        let server = TestServer::start().await;
        server.create_config_map("a", "x").await;
        let check = async |body: pintle_machinery::Value, code: u16, message: &str| {
            let (found, status) = server.send("POST", CONFIG_MAPS, body).await;
            assert_eq!((found, status["message"].as_str().unwrap()), (code, message));
        };
        let elsewhere = json!({"metadata": {"name": "b", "namespace": "other"}});
        let other = "the namespace of the provided object does not match the namespace sent on the request";
        check(elsewhere, 400, other).await;
        check(config_map("a", "x"), 409, "configmaps \"a\" already exists").await;
        let other_version = json!({"kind": "ConfigMap", "apiVersion": "v2"});
        let message = "ConfigMap in version \"v2\" cannot be handled as a ConfigMap: no kind \"ConfigMap\" is \
                       registered for version \"v2\" in scheme \"pkg/api/legacyscheme/scheme.go:30\"";
        check(other_version, 400, message).await;
    }

    #[tokio::test]
    async fn a_body_of_another_known_version_is_decoded_as_that_version() {
        let server = TestServer::start().await;
        let check = async |query: &str, spec: pintle_machinery::Value, message: &str| {
            let uri = format!("/apis/apps/v1/namespaces/default/deployments{query}");
            let body = json!({"kind": "Deployment", "apiVersion": "apps/v1beta1", "spec": spec});
            let (code, status) = server.send("POST", &uri, body).await;
            assert_eq!((code, status["message"].as_str().unwrap()), (400, message));
        };
        let other =
            "the API version in the data (apps/v1beta1) does not match the expected API version (apps/v1)";
        check("", json!({}), other).await;
        check("", json!({"bogus": 1}), other).await;
        let prefix = "Deployment in version \"v1beta1\" cannot be handled as a Deployment: ";
        let why = "strict decoding error: unknown field \"spec.bogus\"";
        check("?fieldValidation=Strict", json!({"bogus": 1}), &format!("{prefix}{why}")).await;
        let why =
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32";
        check("", json!({"replicas": "x"}), &format!("{prefix}{why}")).await;
    }

    #[tokio::test]
    async fn strict_problems_of_a_map_come_before_its_version() {
        let server = TestServer::start().await;
        let check = async |query: &str, body: &str, message: &str| {
            let uri = format!("{WIDGETS}{query}");
            let response = server.respond("POST", &uri, "application/json", body).await;
            let text = response.into_body().collect().await.unwrap().to_bytes();
            let status = pintle_machinery::codec::json::decode_any(&text).unwrap();
            assert_eq!(status["message"].as_str().unwrap(), message, "{body}");
        };
        const STRICT: &str = "?fieldValidation=Strict";
        let unlike = |version: &str| {
            format!(
                "the API version in the data ({version}) does not match the expected API version (example.com/v1)"
            )
        };
        let other_version = r#"{"kind": "Widget", "apiVersion": "example.com/v9", "a": 1, "a": 2}"#;
        check("", other_version, &unlike("example.com/v9")).await;
        let why = "cannot be handled as a Widget: strict decoding error: duplicate field \"a\", unknown field \"a\"";
        check(STRICT, other_version, &format!("Widget in version \"v9\" {why}")).await;
        let unknown = r#"{"kind": "Other", "apiVersion": "x/v1", "a": 1, "metadata": {"b": 1}}"#;
        let why = "cannot be handled as a Other: strict decoding error: unknown field \"metadata.b\"";
        check(STRICT, unknown, &format!("Other in version \"v1\" {why}")).await;
        check(STRICT, r#"{"kind": "Widget", "apiVersion": "x/v1", "a": 1}"#, &unlike("x/v1")).await;
        check(STRICT, r#"{"kind": "Widget", "a": 1}"#, &unlike("")).await;
        let other_kind = r#"{"kind": "Other", "apiVersion": "x/v1", "a": 1, "a": 2}"#;
        let why = "cannot be handled as a Other: strict decoding error: duplicate field \"a\"";
        check(STRICT, other_kind, &format!("Other in version \"v1\" {why}")).await;
        let unversioned = r#"{"kind": "Widget", "a": 1, "a": 2}"#;
        let malformed = r#"{"kind": "W", "apiVersion": "a/b/c"}"#;
        let why = "the object provided is unrecognized (must be of type Widget): unexpected GroupVersion string: a/b/c";
        check("", malformed, &format!("{why} ({{\"kind\": \"W\", \"apiVersion\": \"a ...)")).await;
        let labels = r#"{"kind": "Widget", "metadata": {"labels": ["a"]}}"#;
        let why =
            "json: cannot unmarshal array into Go struct field ObjectMeta.labels of type map[string]string";
        check("", labels, &format!("Widget in version \"\" cannot be handled as a Widget: {why}")).await;
        let why = "the object provided is unrecognized (must be of type Widget): unexpected GroupVersion string: a/b/c";
        let malformed = r#"{"apiVersion": "a/b/c"}"#;
        check("", malformed, &format!("{why} ({malformed})")).await;
        const IGNORE: &str = "?fieldValidation=Ignore";
        check(IGNORE, malformed, &format!("{why} ({malformed})")).await;
        let lenient = |version: &str, body: &str| {
            format!(
                "Widget in version \"{version}\" cannot be handled as a Widget: Object 'Kind' is missing in '{body}'"
            )
        };
        check(IGNORE, "{}", &lenient("v1", "{}")).await;
        check(IGNORE, "null", &lenient("v1", "null")).await;
        let versioned = r#"{"apiVersion": "x/v9"}"#;
        check(IGNORE, versioned, &lenient("v9", versioned)).await;
        let missing = "Object 'apiVersion' is missing in 'object has no apiVersion field'";
        check(STRICT, unversioned, missing).await;
    }

    #[tokio::test]
    async fn the_type_metadata_of_a_map_has_exact_names() {
        let server = TestServer::start().await;
        let check = async |query: &str, media_type: &str, body: &str, message: &str| {
            let uri = format!("{WIDGETS}?dryRun=All&fieldValidation={query}");
            let response = server.respond("POST", &uri, media_type, body).await;
            let text = response.into_body().collect().await.unwrap().to_bytes();
            let status = pintle_machinery::codec::json::decode_any(&text).unwrap();
            assert_eq!(status["message"].as_str().unwrap_or_default(), message, "{body}");
        };
        let json = "application/json";
        let no_kind = |body: &str| {
            let start: String = body.chars().take(30).collect();
            format!(
                "the object provided is unrecognized (must be of type Widget): Object 'Kind' is missing in '{body}' ({start} ...)"
            )
        };
        for body in [
            r#"{"Kind":"Widget","apiVersion":"example.com/v1"}"#,
            r#"{"kind":"","Kind":"Widget","apiVersion":"example.com/v1"}"#,
            r#"{"Kind":"Widget","apiVersion":null,"metadata":{"name":1}}"#,
            r#"{"kind":"Widget","apiVersion":"a/b/c","apiversion":"example.com/v1"}"#,
        ] {
            check("Strict", json, body, &no_kind(body)).await;
        }
        let lower = r#"{"kind":"Widget","apiversion":"example.com/v1","metadata":{"name":"a"}}"#;
        let unlike =
            "the API version in the data () does not match the expected API version (example.com/v1)";
        check("Warn", json, lower, unlike).await;
        let null = r#"{"kind":"Widget","apiVersion":null,"a":1,"a":2}"#;
        let why = "Widget in version \"\" cannot be handled as a Widget: .apiVersion accessor error: <nil> is of the type <nil>, expected string";
        check("Strict", json, null, why).await;
        let both = r#"{"kind":"Widget","Kind":"Other","apiVersion":"example.com/v1","apiversion":"x/v1","metadata":{"name":"a"}}"#;
        check("Ignore", json, both, "").await;
        let why = "Widget in version \"v1\" cannot be handled as a Widget: Object 'Kind' is missing in ";
        let yaml = "Kind: Widget\napiVersion: example.com/v1\nB: 1\n";
        let shown = r#"'{"B":1,"Kind":"Widget","apiVersion":"example.com/v1"}'"#;
        check("Ignore", "application/yaml", yaml, &format!("{why}{shown}")).await;
    }

    #[tokio::test]
    async fn a_map_names_its_kind_and_a_struct_has_that_of_the_path() {
        let server = TestServer::start().await;
        let (code, object) = server.send("POST", CONFIG_MAPS, json!({"metadata": {"name": "a"}})).await;
        assert_eq!((code, &object["kind"]), (201, &json!("ConfigMap")));
        let (code, status) = server.send("POST", WIDGETS, json!({"metadata": {"name": "a"}})).await;
        let message = "the object provided is unrecognized (must be of type Widget): Object 'Kind' is missing in \
                       '{\"metadata\":{\"name\":\"a\"}}' ({\"metadata\":{\"name\":\"a\"}})";
        assert_eq!((code, &status["message"]), (400, &json!(message)));
        let (code, status) =
            server.send_as("POST", WIDGETS, "application/vnd.kubernetes.protobuf", json!({})).await;
        assert_eq!((code, &status["reason"]), (400, &json!("BadRequest")));
    }
}
