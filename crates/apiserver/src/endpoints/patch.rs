//! Serves patches: JSON patch, merge patch, strategic merge patch; dispatches server-side apply
//! (<https://kubernetes.io/docs/reference/using-api/api-concepts/#patch-and-apply>).

mod document;
mod read;

pub(super) use document::{Patch, PatchBody};
pub(super) use read::read_patched;

use super::{
    admission::Admission,
    apply::apply,
    body_kind::BodyKind,
    request_scope::RequestScope,
    write::{check_name, encoder, respond, set_namespace},
};
use crate::metrics::BodyVerb;
use crate::{
    base::{body::RequestBody, response::Response},
    registry::{Transform, Upsert},
};
use pintle_admission::{Operation, RequestOptions};
use pintle_machinery::{
    Status, Value, ValueExt,
    options::{FieldValidation, Preconditions, WriteOptions},
    patch::Scope,
};
use pintle_registry::BoxFuture;
use pintle_telemetry::event;

/// Serves a PATCH of an object, or of a subresource of it.
///
/// # Errors
/// The `Status` for the client.
pub(super) async fn patch(
    scope: &RequestScope<'_>,
    body: RequestBody,
    subresource: &str,
) -> Result<Response, Status> {
    let format = match PatchBody::of(scope)? {
        PatchBody::Configuration(media_type) => return apply(scope, body, media_type, subresource).await,
        PatchBody::Document(format) => format,
    };
    let encoder = encoder(scope)?;
    let body = scope.read_body(body, BodyVerb::Patch).await?;
    let options = WriteOptions::parse(scope.query.pairs(), "PatchOptions")?;
    scope.note_patch(&body);
    event!("Recorded the audit event");
    // The object is read first: without it the patch does not matter.
    let patch = Patch::parse(format, &body);
    let kind = scope.resource.resource.group_version_kind();
    let store = scope.store()?;
    let context = scope.context(options.dry_run);
    let mut transform = PatchTransform {
        admission: Admission {
            scope,
            operation: Operation::Update,
            name: &scope.info.name,
            kind: &kind,
            context: &context,
            options: RequestOptions::Write(&options),
        },
        patch,
        validation: options.field_validation.unwrap_or_default(),
        field_manager: &options.field_manager,
    };
    let updated = store
        .update(
            &context,
            store.strategy(subresource)?,
            &Preconditions::default(),
            Upsert::Never,
            &mut transform,
            &scope.warnings,
        )
        .await?;
    event!("Object stored in database");
    respond(&encoder, 200, updated.written)
}

struct PatchTransform<'a> {
    admission: Admission<'a>,
    patch: Result<Patch, Status>,
    validation: FieldValidation,
    field_manager: &'a str,
}

impl PatchTransform<'_> {
    /// The patched object in the storage version.
    fn patched(&self, old: &Value) -> Result<Value, Status> {
        let patch = self.patch.as_ref().map_err(Status::clone)?;
        let resource = self.admission.scope.resource;
        let schema = resource.schema.get();
        let mut rest = resource.from_storage(old.clone());
        let wanted = BodyKind::of(resource, self.admission.kind);
        let patch_scope = if patch.repeats_members() { Scope::Whole } else { patch.scope() };
        let part = patch_scope.take(&mut rest, schema);
        let written = || {
            let part = patch_scope.take(&mut resource.from_storage(old.clone()), schema);
            patch.written(&part, wanted)
        };
        let mut patched = patch.apply(part, schema, self.validation)?;
        // A tree holds no empty lists; a list with one empty entry requests the same reset.
        if resource.resource.model.empty_managed_fields_reset()
            && patched.at("metadata.managedFields").and_then(Value::as_array).is_some_and(Vec::is_empty)
        {
            patched.set("metadata.managedFields", pintle_machinery::json!([{}]));
        }
        let is_whole = patch_scope == Scope::Whole;
        let read =
            read_patched(self.admission.scope, patch, patched, &written, is_whole, wanted, self.validation);
        let patched = read.map_err(|status| match status.code {
            422 => patch.undecodable(resource.from_storage(old.clone()), wanted, self.validation, &status),
            _ => status,
        })?;
        let patched = patch_scope.put_back(rest, patched);
        let mut patched = resource.to_storage(patched);
        set_namespace(self.admission.scope, &mut patched)?;
        check_name(&patched, &self.admission.scope.info.name)?;
        let scope = self.admission.scope;
        scope.store()?.set_defaults_of_body(&mut patched, &scope.empty_fields);
        Ok(patched)
    }
}

impl Transform for PatchTransform<'_> {
    fn apply<'a>(&'a mut self, old: Option<&'a Value>) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(async move {
            let old = old.ok_or_else(|| Status::internal_error("a patch without its object"))?;
            let mut patched = self.patched(old)?;
            self.admission.scope.managed_write(self.field_manager).update(Some(old), &mut patched).await;
            self.admission.admit(patched, Some(old)).await
        })
    }

    fn may_drop_managed_fields(&self) -> bool {
        true
    }

    fn validate<'a>(
        &'a mut self,
        new: &'a Value,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(self.admission.validate(new, old))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{
        BALLOONS, CONFIG_MAPS, INFLATED_BALLOONS, TestServer, WIDGETS, config_map, widget,
    };
    use http::header;
    use http_body_util::BodyExt;
    use pintle_machinery::{Value, ValueExt, json};

    #[tokio::test]
    async fn a_patch_is_applied_in_the_format_of_its_content_type() {
        let server = TestServer::start().await;
        server.create_config_map("a", "x").await;
        let check = async |format: &str, patch: Value, code: u16, data: Value| {
            let uri = format!("{CONFIG_MAPS}/a");
            let (found, object) = server.send_as("PATCH", &uri, format, patch).await;
            assert_eq!((found, &object["data"]), (code, &data), "{object}");
        };
        let add = json!([{"op": "add", "path": "/data/b", "value": "2"}]);
        check("application/json-patch+json", add, 200, json!({"a": "1", "b": "2"})).await;
        let merge = json!({"data": {"a": null}});
        check("application/merge-patch+json", merge, 200, json!({"b": "2"})).await;
        let strategic = json!({"data": {"c": "3"}});
        check("application/strategic-merge-patch+json", strategic, 200, json!({"b": "2", "c": "3"})).await;
        check("application/json", json!({}), 415, json!(null)).await;
        let missing = json!([{"op": "remove", "path": "/data/z"}]);
        check("application/json-patch+json", missing, 422, json!(null)).await;
    }

    #[tokio::test]
    async fn the_object_is_read_before_the_patch() {
        let server = TestServer::start().await;
        server.create_config_map("a", "x").await;
        for format in ["application/merge-patch+json", "application/strategic-merge-patch+json"] {
            for (name, code) in [("a", 400), ("none", 404)] {
                let uri = format!("{CONFIG_MAPS}/{name}");
                let response = server.respond("PATCH", &uri, format, "x").await;
                assert_eq!(response.status().as_u16(), code, "{format} {name}");
            }
        }
    }

    #[tokio::test]
    async fn a_patched_object_is_read_from_its_text() {
        let server = TestServer::start().await;
        server.create_config_map("a", "x").await;
        let patch = async |body: &str| {
            let uri = format!("{CONFIG_MAPS}/a?fieldValidation=Warn");
            server.respond("PATCH", &uri, "application/json-patch+json", body).await
        };
        let twice = r#"[{"op": "add", "path": "/data", "value": {"b": "1", "b": "2"}}]"#;
        let response = patch(twice).await;
        let warnings: Vec<_> = response.headers().get_all(header::WARNING).iter().collect();
        let expected = [
            r#"299 - "json patch duplicate field \"[0].value.b\"""#,
            r#"299 - "duplicate field \"data.b\"""#,
        ];
        assert_eq!(warnings, expected);
        // The message has the order, the digits and the escapes that the client wrote.
        let body = patch(r#"[{"op": "add", "path": "/data", "value": {"z": 10.0, "a": "\u00e9"}}]"#).await;
        let body = body.into_body().collect().await.unwrap().to_bytes();
        let status: serde_json::Value = serde_json::from_slice(&body).unwrap();
        let message = status["message"].as_str().unwrap();
        assert!(message.contains(r#"\"data\":{\"z\":10.0,\"a\":\"\\u00e9\"}"#), "{message}");
        let why = "json: cannot unmarshal number into Go struct field ConfigMap.data of type string";
        assert!(message.ends_with(why), "{message}");
    }

    #[tokio::test]
    async fn unknown_fields_of_a_merged_map_are_not_escaped() {
        let server = TestServer::start().await;
        server.create_config_map("a", "x").await;
        let uri = format!("{CONFIG_MAPS}/a?fieldValidation=Warn");
        for (format, expected) in [("strategic-merge", r#"q\"z"#), ("merge", r#"q\\\"z"#)] {
            let format = format!("application/{format}-patch+json");
            let response = server.respond("PATCH", &uri, &format, r#"{"q\"z": 1}"#).await;
            let warnings: Vec<_> = response.headers().get_all(header::WARNING).iter().collect();
            assert_eq!(warnings, [format!(r#"299 - "unknown field \"{expected}\"""#).as_str()], "{format}");
        }
    }

    #[tokio::test]
    async fn unknown_fields_that_a_patch_adds_are_told_in_its_order() {
        let server = TestServer::start().await;
        server.create_config_map("a", "x").await;
        let uri = format!("{CONFIG_MAPS}/a?fieldValidation=Warn&dryRun=All");
        let owner = r#"{"z": 1, "b": 2, "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}"#;
        let in_place = |patch: &str| patch.replace("OWNER", owner);
        for (format, patch, expected) in [
            ("json", r#"[{"op": "add", "path": "/metadata/ownerReferences", "value": [OWNER]}]"#, ["z", "b"]),
            ("merge", r#"{"metadata": {"ownerReferences": [OWNER]}}"#, ["b", "z"]),
        ] {
            let format = format!("application/{format}-patch+json");
            let response = server.respond("PATCH", &uri, &format, &in_place(patch)).await;
            let warnings = response.headers().get_all(header::WARNING).iter();
            let warnings: Vec<_> = warnings.map(|warning| warning.to_str().unwrap()).collect();
            let warning = |name| format!(r#"299 - "unknown field \"metadata.ownerReferences[0].{name}\"""#);
            assert_eq!(warnings, expected.map(warning), "{format}");
        }
    }

    #[tokio::test]
    async fn several_media_types_find_the_route_and_are_no_format() {
        let server = TestServer::start().await;
        assert_eq!(server.send("POST", CONFIG_MAPS, config_map("a", "x")).await.0, 201);
        let uri = format!("{CONFIG_MAPS}/a");
        for (media_type, start) in [
            ("application/json", "415: Unsupported Media Type"),
            ("application/json,text/plain", "415: Unsupported Media Type"),
            (
                "application/json, application/merge-patch+json;x=y",
                "the body of the request was in an unknown format",
            ),
        ] {
            let (code, status) = server.send_as("PATCH", &uri, media_type, json!({})).await;
            let message = status["message"].as_str().unwrap();
            assert!(code == 415 && message.starts_with(start), "{media_type}: {message}");
        }
    }

    #[tokio::test]
    async fn a_patch_of_a_map_is_of_one_of_its_formats() {
        let server = TestServer::start().await;
        assert_eq!(server.send("POST", WIDGETS, widget("a")).await.0, 201);
        let uri = format!("{WIDGETS}/a");
        let patch = json!({"spec": {"size": 2}});
        let (code, object) =
            server.send_as("PATCH", &uri, "application/merge-patch+json", patch.clone()).await;
        assert_eq!((code, &object["spec"]), (200, &json!({"size": 2})));
        let (code, status) =
            server.send_as("PATCH", &uri, "application/strategic-merge-patch+json", patch).await;
        let message = "the body of the request was in an unknown format - accepted media types include: \
                       application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";
        assert_eq!((code, &status["message"]), (415, &json!(message)));
    }

    #[tokio::test]
    async fn a_patched_custom_resource_names_its_kind_and_version() {
        let server = TestServer::start().await;
        assert_eq!(server.send("POST", WIDGETS, widget("a")).await.0, 201);
        let check = async |patch: Value, code: u16, message: &str| {
            let uri = format!("{WIDGETS}/a");
            let (found, status) = server.send_as("PATCH", &uri, "application/merge-patch+json", patch).await;
            let text = status["message"].as_str().unwrap_or_default();
            assert!(found == code && text.contains(message), "{status}");
        };
        check(json!({"kind": null}), 422, "Object 'Kind' is missing in '{\"apiVersion\":\"example.com/v1\",")
            .await;
        check(
            json!({"kind": 5}),
            422,
            "couldn't get version/kind; json parse error: json: cannot unmarshal number",
        )
        .await;
        check(json!({"apiVersion": "a/b/c"}), 422, "unexpected GroupVersion string: a/b/c").await;
        check(
            json!({"apiVersion": null}),
            500,
            "Object 'apiVersion' is missing in 'object has no apiVersion field'",
        )
        .await;
        check(json!({"apiVersion": "example.com/v1", "kind": "Widget"}), 200, "").await;
    }

    #[tokio::test]
    async fn unknown_fields_of_a_map_are_those_of_the_version_that_it_names() {
        let server = TestServer::start().await;
        let balloon = |version: &str| json!({"kind": "Balloon", "apiVersion": version, "metadata": {"name": "a"}, "knots": 1});
        assert_eq!(server.send("POST", BALLOONS, balloon("example.com/v1")).await.0, 201);
        for (version, unknown) in [
            ("example.com/v2", "unknown field \"knots\""),
            ("example.com/v9", "unknown field \"knots\", unknown field \"x\""),
            ("other.com/v2", "unknown field \"metadata.y\""),
        ] {
            let mut object = balloon(version);
            if version != "example.com/v2" {
                object.set("x", 1);
            }
            if version == "other.com/v2" {
                object.set("metadata.y", 1);
            }
            for (method, uri, media_type) in [
                ("POST", BALLOONS.to_owned(), "application/json"),
                ("PATCH", format!("{BALLOONS}/a"), "application/merge-patch+json"),
            ] {
                let uri = format!("{uri}?fieldValidation=Strict");
                let (_, status) = server.send_as(method, &uri, media_type, object.clone()).await;
                let message = status["message"].as_str().unwrap();
                let why = format!("strict decoding error: {unknown}");
                assert!(message.ends_with(&why), "{method} {version}: {message}");
            }
        }
    }

    #[tokio::test]
    async fn the_kind_in_the_text_of_a_built_in_object_counts() {
        let server = TestServer::start().await;
        server.create_config_map("a", "x").await;
        let check = async |format: &str, patch: Value, code: u16, message: &str| {
            let format = format!("application/{format}-patch+json");
            let (found, status) =
                server.send_as("PATCH", &format!("{CONFIG_MAPS}/a"), &format, patch.clone()).await;
            let text = status["message"].as_str().unwrap_or_default();
            assert!(found == code && text.ends_with(message), "{format} {patch}: {status}");
        };
        let unnamed = "the name of the object (a based on URL) was undeterminable: name must be provided";
        check("merge", json!({"apiVersion": null}), 400, unnamed).await;
        check("merge", json!({"apiVersion": "/"}), 400, unnamed).await;
        let number = "json: cannot unmarshal number into Go struct field .apiVersion of type string";
        check("merge", json!({"apiVersion": 5}), 422, number).await;
        check("merge", json!({"kind": null}), 200, "").await;
        check("merge", json!({"apiVersion": "/v1"}), 200, "").await;
        let internal = "no kind \"Foo\" is registered for the internal version of group \"\" in scheme \
                        \"pkg/api/legacyscheme/scheme.go:30\"";
        check("merge", json!({"apiVersion": null, "kind": "Foo"}), 422, internal).await;
        // A strategic merge patch changes the object and not its text.
        check("strategic-merge", json!({"apiVersion": "other/v1", "kind": "Foo"}), 200, "").await;
    }

    #[tokio::test]
    async fn errors_have_an_order() {
        const LIST_FORM: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
        const ONE_FORM: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
        const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
        const MERGE: &str = "application/merge-patch+json";
        let server = TestServer::start().await;
        server.create_config_map("a", "x").await;
        let check = async |method: &str, path: &str, accept: &str, content_type: &str, code: u16| {
            let headers = [(header::ACCEPT, accept), (header::CONTENT_TYPE, content_type)];
            let uri = format!("{CONFIG_MAPS}{path}");
            let response = server.respond_with(method, &uri, &headers, "{}").await;
            assert_eq!(response.status(), code, "{method} {path} {accept} {content_type}");
        };
        // The format of a patch comes before the form of the response, and this before the options.
        check("PATCH", "/a?fieldValidation=x", "image/png", "text/plain", 415).await;
        check("PATCH", "/a?fieldValidation=x", "image/png", MERGE, 406).await;
        check("PATCH", "/a?fieldValidation=x", LIST_FORM, MERGE, 422).await;
        // A form that objects or lists do not have is refused when there is one.
        check("PATCH", "/b", LIST_FORM, MERGE, 404).await;
        check("PATCH", "/a", LIST_FORM, MERGE, 406).await;
        check("GET", "/b", LIST_FORM, "", 404).await;
        check("GET", "/a", LIST_FORM, "", 406).await;
        check("GET", "?limit=x", ONE_FORM, "", 400).await;
        check("GET", "", ONE_FORM, "", 406).await;
        // The part of the object in rows is a matter of tables.
        check("GET", "/a?includeObject=x", "application/json", "", 200).await;
        check("GET", "/a?includeObject=x", TABLE, "", 400).await;
        check("GET", "/b?includeObject=x", TABLE, "", 404).await;
        check("GET", "/a?export=false", TABLE, "", 200).await;
        check("GET", "/a?export", TABLE, "", 400).await;
        // So it is after a deletion, whose answer has no rows.
        check("DELETE", "/a?includeObject=x", TABLE, "application/json", 400).await;
        check("GET", "/a", TABLE, "", 404).await;
    }

    #[tokio::test]
    async fn a_patch_whose_response_fails_is_applied_once() {
        let server = TestServer::start().await;
        let (mut failed_after_write, mut succeeded) = (0, 0);
        for number in 1..10 {
            let name = format!("b{number}");
            let balloon = json!({
                "kind": "Balloon", "apiVersion": "example.com/v1", "metadata": {"name": name}, "list": [],
            });
            let (code, created) = server.send("POST", BALLOONS, balloon).await;
            assert_eq!(code, 201);
            // Until the cache has it: the patch is first tried on the cached object.
            let list = format!(
                "{BALLOONS}?resourceVersionMatch=NotOlderThan&resourceVersion={}",
                created.str_at("metadata.resourceVersion")
            );
            assert_eq!(server.send("GET", &list, json!(null)).await.0, 200);
            server.fail_conversion(number);
            let uri = format!("{INFLATED_BALLOONS}/{name}");
            let patch = json!([{"op": "add", "path": "/list/-", "value": 1}]);
            let (code, answer) = server.send_as("PATCH", &uri, "application/json-patch+json", patch).await;
            server.fail_conversion(0);
            let (_, stored) = server.send("GET", &format!("{BALLOONS}/{name}"), json!(null)).await;
            match (code, stored.items_at("list").len()) {
                (200, 1) => succeeded += 1,
                (500, 1) => failed_after_write += 1,
                (500, 0) => {}
                _ => panic!("{number}: {answer} {stored}"),
            }
        }
        assert!(failed_after_write > 0 && succeeded > 0, "{failed_after_write} {succeeded}");
    }
}
