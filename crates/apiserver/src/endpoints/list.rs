//! Serves lists. [`super::page`] selects the objects, [`super::list_body`] writes the response.

use super::{
    list_body::{ListBody, ListForm, Objects},
    page::Page,
    request_scope::RequestScope,
    selection::Selection,
};
use crate::base::{
    compression::declare,
    negotiation::Offers,
    response::{Response, with_content_type},
};
use pintle_machinery::Status;
use pintle_offload::weigh;
use std::sync::{Arc, atomic::Ordering};

/// Serves a GET of a collection.
///
/// # Errors
/// The `Status` for the client.
pub(super) async fn list(scope: &RequestScope<'_>) -> Result<Response, Status> {
    let (accepted, include_object) = scope.form(Offers::List)?;
    let options = scope.list_options()?;
    let store = scope.store()?;
    let selection = Arc::new(Selection::parse_with_shards(scope, &options)?);
    let page = Page::select(store, scope, &options, selection).await?;
    if store.cacher().is_read_cached() {
        store.cacher().metrics().lists.fetch_add(1, Ordering::Relaxed);
    }
    let unreadable = page.unreadable();
    if unreadable > 0 {
        // Kube-apiserver fails the whole list then. Here the readable objects are listed, with a warning.
        let resource = scope.resource.resource.group_resource();
        scope.warnings.add(format!(
            "{unreadable} {resource} could not be read from storage and are missing from this list"
        ));
    }
    let content_type = accepted.media_type;
    let may_compress = scope.may_compress_items();
    let form =
        ListForm { resource: scope.resource_arc(), accepted, include_object, now: scope.now, may_compress };
    let encoder = form.encoder();
    if !encoder.is_cached_json() || may_compress || scope.resource.resource.converter.is_some() {
        weigh(page.size()).await;
    }
    encoder.convert(page.objects(None)).await?;
    drop(encoder);
    let metadata = page.metadata.clone();
    let objects = Objects::Page { page: Box::new(page), after: None };
    let ListBody { body, is_compressed } = form.body(objects, &metadata).await?;
    let mut response = with_content_type(200, content_type.as_str(), body);
    if is_compressed {
        declare(response.headers_mut());
    }
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::super::{
        page::LONG_MATCH,
        testing::{BALLOONS, CONFIG_MAPS, INFLATED, INFLATED_BALLOONS, TestServer, WIDGETS, widget},
    };
    use crate::base::{body::Body, compression::THRESHOLD};
    use flate2::read::GzDecoder;
    use http::header;
    use http_body_util::BodyExt as _;
    use pintle_cacher::ByteBudget;
    use pintle_machinery::{continue_token::ContinueToken, json};
    use pintle_offload::{LIGHT, is_on_worker};
    use std::{
        io::Read as _,
        sync::{
            Arc,
            atomic::{AtomicU64, Ordering},
        },
    };

    #[tokio::test]
    async fn the_shards_of_a_resource_are_disjoint_and_complete() {
        const MIDDLE: &str = "0x8000000000000000";
        let server = TestServer::start().await;
        for index in 0..16 {
            server.create_config_map(&format!("map-{index}"), "x").await;
            let name = format!("widget-{index}");
            assert_eq!(server.send("POST", WIDGETS, widget(&name)).await.0, 201);
        }
        let list = async |collection: &str, start: &str, end: &str, more: &str| {
            let selector =
                format!("shardRange(object.metadata.uid,%20'{start}',%20'{end}')").replace('\'', "%27");
            let uri = format!("{collection}?shardSelector={selector}{more}");
            let (code, list) = server.send("GET", &uri, json!(null)).await;
            assert_eq!(code, 200, "{list}");
            list
        };
        let uids = |list: &pintle_machinery::Value| {
            let items = list["items"].as_array().unwrap().iter();
            items.map(|item| item["metadata"]["uid"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        for collection in [CONFIG_MAPS, WIDGETS] {
            let low = list(collection, "0x0000000000000000", MIDDLE, "").await;
            let high = list(collection, MIDDLE, "0x10000000000000000", "").await;
            assert_eq!(
                low["metadata"]["shardInfo"]["selector"],
                format!("shardRange(object.metadata.uid, '0x0000000000000000', '{MIDDLE}')")
            );
            let mut shards = uids(&low);
            shards.extend(uids(&high));
            let (_, whole) = server.send("GET", collection, json!(null)).await;
            assert_eq!(whole["metadata"]["shardInfo"], json!(null));
            let mut all = uids(&whole);
            all.sort();
            shards.sort();
            assert_eq!(shards, all, "each object is in one of the two");
        }
        let page = list(CONFIG_MAPS, "0x0000000000000000", "0x10000000000000000", "&limit=3").await;
        assert_eq!(uids(&page).len(), 3);
        assert_eq!(page["metadata"]["remainingItemCount"], 13);
        let (code, status) =
            server.send("GET", &format!("{CONFIG_MAPS}?shardSelector=bad"), json!(null)).await;
        assert_eq!((code, &status["reason"]), (500, &json!(null)));
        assert_eq!(
            status["message"],
            "invalid shard selector: unexpected expression kind 3; expected shardRange() call or || operator"
        );
    }

    #[tokio::test]
    async fn a_full_page_has_a_token_if_any_object_follows() {
        let server = TestServer::start().await;
        for (name, app) in [("a", "x"), ("ab", "y"), ("b", "y")] {
            server.create_config_map(name, app).await;
        }
        let rows = [
            ("limit=1&labelSelector=app%3Dx", true),
            ("limit=2&labelSelector=app%3Dx", false),
            ("limit=2&labelSelector=app%3Dy", false),
            ("limit=1&fieldSelector=metadata.name!%3Db", true),
            // A list of one key has no pages.
            ("limit=1&fieldSelector=metadata.name%3Da", false),
        ];
        for (query, expected) in rows {
            let (_, list) = server.send("GET", &format!("{CONFIG_MAPS}?{query}"), json!(null)).await;
            let token = list["metadata"]["continue"].as_str();
            assert_eq!(token.is_some(), expected, "{query}");
            assert_eq!(list["metadata"]["remainingItemCount"], json!(null), "{query}");
        }
    }

    #[tokio::test]
    async fn a_list_is_selected_and_paged() {
        let server = TestServer::start().await;
        for (name, app) in [("a", "x"), ("b", "y"), ("c", "x")] {
            server.create_config_map(name, app).await;
        }
        let list = async |query: &str| {
            let (code, list) = server.send("GET", &format!("{CONFIG_MAPS}?{query}"), json!(null)).await;
            assert_eq!(code, 200, "{list}");
            let items = list["items"].as_array().unwrap().iter();
            let names: Vec<_> = items.map(|item| item["metadata"]["name"].as_str().unwrap()).collect();
            (names.join(","), list["metadata"].clone())
        };
        assert_eq!(list("labelSelector=app%3Dx").await.0, "a,c");
        assert_eq!(list("fieldSelector=metadata.name%3Db").await.0, "b");
        let (names, metadata) = list("limit=2").await;
        assert_eq!((names.as_str(), &metadata["remainingItemCount"]), ("a,b", &json!(1)));
        let (names, metadata) = list(&format!("continue={}", metadata["continue"].as_str().unwrap())).await;
        assert_eq!((names.as_str(), &metadata["continue"]), ("c", &json!(null)));
        let uri = format!("{CONFIG_MAPS}?fieldSelector=data%3Db");
        let (code, status) = server.send("GET", &uri, json!(null)).await;
        let message =
            "\"data\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"";
        assert_eq!((code, &status["message"]), (400, &json!(message)));
    }

    #[tokio::test]
    async fn a_selective_list_counts_each_object_that_it_reads_once() {
        let server = TestServer::start().await;
        // The matches of one selector are kept, and those of the other are too large for that.
        let large = json!({"x": "x".repeat(LIGHT / 2)});
        for index in 0..12 {
            let (app, data) = if index % 3 == 0 { ("large", large.clone()) } else { ("small", json!({})) };
            let metadata = json!({"name": format!("map-{index:02}"), "labels": {"app": app}});
            let body = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": data});
            assert_eq!(server.send("POST", CONFIG_MAPS, body).await.0, 201);
        }
        let metrics = server.config_maps();
        let counted = || {
            let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
            (count(&metrics.metrics().list_fetched), count(&metrics.metrics().list_returned))
        };
        let rows = [
            ("labelSelector=app!%3Dlarge", "01,02,04,05,07,08,10,11", 12),
            ("labelSelector=app!%3Dsmall", "00,03,06,09", 12),
            ("labelSelector=app!%3Dlarge&limit=3", "01,02,04", 5),
            ("labelSelector=app!%3Dsmall&limit=3", "00,03,06", 7),
            ("labelSelector=app!%3Dlarge,app!%3Dsmall", "", 12),
        ];
        for (query, expected, read) in rows {
            let before = counted();
            let (found, metadata) = names(&server, &format!("{CONFIG_MAPS}?{query}")).await;
            let expected: Vec<_> = expected.split_terminator(',').map(|name| format!("map-{name}")).collect();
            assert_eq!(found, expected.join(","), "{query}");
            assert_eq!(metadata["continue"].is_string(), query.contains("limit"), "{query}");
            let after = counted();
            assert_eq!((after.0 - before.0, after.1 - before.1), (read, expected.len() as u64), "{query}");
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_long_selection_among_many_objects_leaves_the_workers() {
        let server = Arc::new(TestServer::start().await);
        for index in 0..=LIGHT / LONG_MATCH {
            server.create_config_map(&format!("map-{index}"), "x").await;
        }
        let keys: Vec<_> = (0..100).map(|index| format!("!key-{index},app!%3Dx")).collect();
        for (selector, stays) in [("app!%3Dx", true), (&*keys.join(","), false)] {
            let uri = format!("{CONFIG_MAPS}?labelSelector={selector}");
            let server = server.clone();
            let work = async move {
                assert!(is_on_worker());
                assert_eq!(names(&server, &uri).await.0, "");
                is_on_worker()
            };
            assert_eq!(tokio::spawn(pintle_offload::scope(work)).await.unwrap(), stays, "{selector}");
        }
    }

    /// The names in a list, and its metadata.
    async fn names(server: &TestServer, uri: &str) -> (String, pintle_machinery::Value) {
        let (code, list) = server.send("GET", uri, json!(null)).await;
        assert_eq!(code, 200, "{list}");
        let items = list["items"].as_array().unwrap().iter();
        let names: Vec<_> = items.map(|item| item["metadata"]["name"].as_str().unwrap()).collect();
        (names.join(","), list["metadata"].clone())
    }

    #[tokio::test]
    async fn a_list_goes_on_when_memory_has_its_state_no_longer() {
        let server = TestServer::start().await;
        for (name, app) in [("a", "x"), ("b", "y"), ("c", "x"), ("d", "y"), ("e", "x")] {
            server.create_config_map(name, app).await;
        }
        let (first, metadata) = names(&server, &format!("{CONFIG_MAPS}?limit=2")).await;
        assert_eq!((first.as_str(), &metadata["remainingItemCount"]), ("a,b", &json!(3)));
        // More than the event log keeps, and more states than are retained.
        let text = "x".repeat(300_000);
        for _ in 0..70 {
            let body = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "e"}, "data": {"x": text}});
            assert_eq!(server.send("PUT", &format!("{CONFIG_MAPS}/e"), body).await.0, 200);
            assert_eq!(names(&server, &format!("{CONFIG_MAPS}?limit=1")).await.0, "a");
        }
        let token = |metadata: &pintle_machinery::Value| metadata["continue"].as_str().unwrap().to_owned();
        let next = |query: String| format!("{CONFIG_MAPS}?{query}");
        let (second, of_second) =
            names(&server, &next(format!("limit=2&continue={}", token(&metadata)))).await;
        assert_eq!((second.as_str(), &of_second["remainingItemCount"]), ("c,d", &json!(1)));
        assert_eq!(of_second["resourceVersion"], metadata["resourceVersion"]);
        let (third, of_third) =
            names(&server, &next(format!("limit=2&continue={}", token(&of_second)))).await;
        assert_eq!((third.as_str(), &of_third["remainingItemCount"]), ("e", &json!(null)));
        assert_eq!(
            (&of_third["continue"], &of_third["resourceVersion"]),
            (&json!(null), &metadata["resourceVersion"])
        );
        let selected = format!("limit=1&labelSelector=app%3Dx&continue={}", token(&metadata));
        let (fourth, of_fourth) = names(&server, &next(selected)).await;
        assert_eq!((fourth.as_str(), &of_fourth["remainingItemCount"]), ("c", &json!(null)));
        let selected = format!("limit=1&labelSelector=app%3Dx&continue={}", token(&of_fourth));
        let (fifth, of_fifth) = names(&server, &next(selected)).await;
        assert_eq!((fifth.as_str(), &of_fifth["continue"]), ("e", &json!(null)));
        let version = metadata["resourceVersion"].as_str().unwrap();
        let exact = format!("resourceVersionMatch=Exact&resourceVersion={version}&limit=4");
        let (sixth, of_sixth) = names(&server, &next(exact)).await;
        assert_eq!((sixth.as_str(), &of_sixth["remainingItemCount"]), ("a,b,c,d", &json!(1)));
    }

    #[tokio::test]
    async fn an_empty_list_of_a_kind_without_columns_has_null_rows() {
        let server = TestServer::start().await;
        let accept = [(header::ACCEPT, "application/json;as=Table;v=v1;g=meta.k8s.io")];
        let table = async || {
            let response = server.respond_with("GET", CONFIG_MAPS, &accept, "").await;
            let body = response.into_body().collect().await.unwrap().to_bytes();
            String::from_utf8(body.to_vec()).unwrap()
        };
        let empty = table().await;
        assert!(empty.ends_with(",\"rows\":null}\n"), "{empty}");
        server.create_config_map("a", "x").await;
        let full = table().await;
        assert!(full.contains(",\"rows\":[{\"cells\":"), "{full}");
    }

    #[tokio::test]
    async fn tokens_start_at_their_key_and_limits_do_not_hold_at_any_version() {
        let server = TestServer::start().await;
        for name in ["a", "b", "b1", "c", "d"] {
            server.create_config_map(name, "x").await;
        }
        let at = |query: String| format!("{CONFIG_MAPS}?{query}");
        let (_, metadata) = names(&server, &at("limit=2".to_owned())).await;
        let token = metadata["continue"].as_str().unwrap();
        let decoded = pintle_go_forms::base64::decode_raw_url(token).unwrap();
        let decoded = String::from_utf8(decoded).unwrap();
        assert!(
            decoded.ends_with("\"start\":\"/b\\u0000\"}"),
            "a key of a namespace begins with a slash: {decoded}"
        );
        let page = async |query: &str| names(&server, &at(format!("continue={token}&{query}"))).await.0;
        assert_eq!(page("limit=2").await, "b1,c");
        assert_eq!(page("limit=2&resourceVersion=0").await, "b1,c,d");
        assert_eq!(names(&server, &at("limit=2&resourceVersion=0".to_owned())).await.0, "a,b,b1,c,d");
        // Not the text `0`, so the limit holds.
        assert_eq!(names(&server, &at("limit=2&resourceVersion=00".to_owned())).await.0, "a,b");
        let version = metadata["resourceVersion"].as_str().unwrap().parse().ok();
        for (start_key, expected) in [("b", "b,b1,c,d"), ("b\0", "b1,c,d"), ("b1", "b1,c,d"), ("e", "")] {
            let token = ContinueToken { resource_version: version, start_key: start_key.to_owned() };
            let found = names(&server, &at(format!("continue={}", token.encode("")))).await.0;
            assert_eq!(found, expected, "{start_key:?}");
        }
    }

    #[tokio::test]
    async fn metadata_selectors_of_all_namespaces_select_as_requests_do() {
        let server = TestServer::start().await;
        for (namespace, name) in [("one", "a"), ("one", "b"), ("two", "b"), ("two", "c"), ("twofold", "b")] {
            let body = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}});
            let uri = format!("/api/v1/namespaces/{namespace}/configmaps");
            assert_eq!(server.send("POST", &uri, body).await.0, 201);
        }
        let rows = [
            ("metadata.namespace%3Dtwo", "b,c"),
            ("metadata.namespace%3Dtwo,metadata.name%3Dc", "c"),
            ("metadata.name%3Db", "b,b,b"),
            ("metadata.name%3Db,metadata.namespace!%3Done", "b,b"),
            ("metadata.name%3Db,metadata.name%3Dc", ""),
            ("metadata.namespace%3D", ""),
            ("metadata.namespace%3Dnone", ""),
            ("metadata.namespace%3Dtwo,metadata.namespace%3Done", ""),
            ("metadata.name%3Dd", ""),
        ];
        for (selector, expected) in rows {
            for more in ["", "&resourceVersion=0", "&limit=1"] {
                let mut uri = format!("/api/v1/configmaps?fieldSelector={selector}{more}");
                let mut found = Vec::new();
                loop {
                    let (names, metadata) = names(&server, &uri).await;
                    found.extend((!names.is_empty()).then_some(names));
                    let Some(token) = metadata["continue"].as_str() else { break };
                    uri = format!("/api/v1/configmaps?fieldSelector={selector}{more}&continue={token}");
                }
                assert_eq!(found.join(","), expected, "{selector}{more}");
            }
        }
        let uri = "/api/v1/namespaces/one/configmaps?fieldSelector=metadata.namespace%3Dtwo";
        assert_eq!(names(&server, uri).await.0, "");
    }

    #[tokio::test]
    async fn a_list_of_maps_has_sorted_members_and_items_with_type_metadata() {
        let server = TestServer::start().await;
        assert_eq!(server.send("POST", WIDGETS, widget("a")).await.0, 201);
        let (_, object) = server.send("GET", &format!("{WIDGETS}/a"), json!(null)).await;
        let (_, list) = server.send("GET", WIDGETS, json!(null)).await;
        assert_eq!(list["items"], json!([object]));
        assert_eq!(list["metadata"]["continue"], "");
        let text = server.text(WIDGETS).await;
        assert!(
            text.starts_with(r#"{"apiVersion":"example.com/v1","items":[{"apiVersion":"example.com/v1","#)
        );
        assert!(text.contains(r#"}],"kind":"WidgetList","metadata":{"#), "{text}");
        let text = server.text(CONFIG_MAPS).await;
        assert!(text.starts_with(r#"{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"#), "{text}");
        let (code, status) =
            server.send("GET", &format!("{WIDGETS}?fieldSelector=spec.size%3D1"), json!(null)).await;
        assert_eq!((code, &status["message"]), (400, &json!("field label not supported: spec.size")));
    }

    /// The body of a list that was asked for with gzip, and whether it is compressed.
    async fn gzip(server: &TestServer, uri: &str, accept: &str) -> (Vec<u8>, bool) {
        let headers = [(header::ACCEPT_ENCODING, "gzip"), (header::ACCEPT, accept)];
        let response = server.respond_with("GET", uri, &headers, "").await;
        let is_compressed = response.headers().get(header::CONTENT_ENCODING).is_some();
        let sent = response.into_body().collect().await.unwrap().to_bytes();
        if !is_compressed {
            return (sent.to_vec(), false);
        }
        let mut content = Vec::new();
        GzDecoder::new(&sent[..]).read_to_end(&mut content).unwrap();
        (content, true)
    }

    #[tokio::test]
    async fn a_long_list_consists_of_compressed_items() {
        const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
        let server = TestServer::start().await;
        let large = |name: &str, text: &str| {
            let data = json!({"text": text.repeat(20_000)});
            json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": data})
        };
        for index in 0..40 {
            let (code, _) =
                server.send("POST", CONFIG_MAPS, large(&format!("map-{index}"), &format!("{index} "))).await;
            assert_eq!(code, 201);
        }
        for round in 0..3 {
            for accept in ["application/json", PROTOBUF] {
                let plain = server.respond_with("GET", CONFIG_MAPS, &[(header::ACCEPT, accept)], "").await;
                let plain = plain.into_body().collect().await.unwrap().to_bytes().to_vec();
                assert!(plain.len() > 1 << 20);
                assert!(gzip(&server, CONFIG_MAPS, accept).await == (plain, true), "{accept}");
            }
            // An item that has changed is compressed again.
            let name = format!("map-{round}");
            let (code, _) =
                server.send("PUT", &format!("{CONFIG_MAPS}/{name}"), large(&name, "changed ")).await;
            assert_eq!(code, 200);
        }
        let limited = format!("{CONFIG_MAPS}?limit=1&fieldSelector=metadata.name%3Dmap-9");
        let (content, is_compressed) = gzip(&server, &limited, "application/json").await;
        assert!(!is_compressed && content.len() < THRESHOLD);
        // Forms that are made for each response are compressed by the filter.
        let table = "application/json;as=Table;g=meta.k8s.io;v=v1";
        assert!(!gzip(&server, CONFIG_MAPS, table).await.1);
        assert!(!gzip(&server, &format!("{CONFIG_MAPS}?pretty=true"), "application/json").await.1);
    }

    /// Text that hardly becomes smaller when it is packed.
    fn noise(seed: u32, length: usize) -> String {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            char::from(b'a' + (state >> 24) as u8 % 26)
        };
        (0..length).map(|_| next()).collect()
    }

    #[tokio::test]
    async fn slow_lists_in_another_version_do_not_keep_all_that_is_converted() {
        const BUDGET: usize = 16 << 20;
        const OBJECTS: usize = 100;
        let budget = ByteBudget::new(BUDGET, 0);
        let server = TestServer::start_with(|storage| storage.held_states(budget.clone())).await;
        let write = async |method: &str, number: usize| {
            let name = format!("b{number}");
            let uri = if method == "POST" { BALLOONS.to_owned() } else { format!("{BALLOONS}/{name}") };
            let body = json!({"kind": "Balloon", "apiVersion": "example.com/v1", "metadata": {"name": name},
                "spec": {"by": method}});
            let (code, object) = server.send(method, &uri, body).await;
            assert!(code < 300, "{object}");
            object["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
        };
        let mut revision = String::new();
        for number in 0..OBJECTS {
            revision = write("POST", number).await;
        }
        let begin = async |query: &str| {
            let mut body =
                server.respond("GET", &format!("{INFLATED_BALLOONS}{query}"), "", "").await.into_body();
            assert!(body.frame().await.is_some());
            body
        };
        let rest = async |body: Body| body.collect().await.unwrap().to_bytes();
        // The forms of the present objects are those that the cache has.
        let present = begin("").await;
        assert_eq!(budget.used(), 0);
        for number in 0..OBJECTS {
            write("PUT", number).await;
        }
        assert_eq!(server.send("GET", &format!("{BALLOONS}?limit=1"), json!(null)).await.0, 200);
        assert!(budget.used() > OBJECTS * INFLATED);
        assert!(rest(present).await.ends_with(b"}\n"));
        let mut readers = Vec::new();
        for _ in 0..6 {
            readers.push(begin(&format!("?resourceVersion={revision}&resourceVersionMatch=Exact")).await);
            assert!(budget.used() <= BUDGET);
        }
        let mut whole = 0;
        for reader in readers {
            whole += usize::from(rest(reader).await.ends_with(b"}\n"));
        }
        assert!((1..=BUDGET / (OBJECTS * INFLATED)).contains(&whole), "{whole}");
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test]
    async fn a_list_whose_client_is_slow_does_not_keep_all_that_is_replaced() {
        const OBJECTS: u32 = 8;
        let server = TestServer::start_with(|storage| storage.held_states(ByteBudget::new(400_000, 0))).await;
        let write = async |method: &str, number: u32, seed: u32| {
            let name = format!("map-{number}");
            let uri = if method == "POST" { CONFIG_MAPS.to_owned() } else { format!("{CONFIG_MAPS}/{name}") };
            let data = json!({"text": noise(seed, 200_000)});
            let body =
                json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": data});
            assert!(server.send(method, &uri, body).await.0 < 300);
        };
        for number in 0..OBJECTS {
            write("POST", number, number).await;
        }
        let begin = async |query: &str| {
            let mut body = server.respond("GET", &format!("{CONFIG_MAPS}{query}"), "", "").await.into_body();
            assert!(body.frame().await.is_some());
            body
        };
        let rest = async |body: Body| body.collect().await.unwrap().to_bytes();
        // One object that is replaced is not much.
        let slow = begin("").await;
        write("PUT", OBJECTS - 1, 100).await;
        let whole = rest(slow).await;
        assert!(whole.ends_with(b"]}\n") && !String::from_utf8_lossy(&whole).contains(&noise(100, 1000)));
        // Whole lists, selections and pages lose their states alike.
        let readers = [begin("").await, begin("?labelSelector=!x").await, begin("?limit=2").await];
        for number in 0..OBJECTS {
            write("PUT", number, 200 + number).await;
        }
        // The cache has the writes that a consistent read sees.
        assert_eq!(server.send("GET", &format!("{CONFIG_MAPS}?limit=1"), json!(null)).await.0, 200);
        let mut ends = Vec::new();
        for reader in readers {
            ends.push(rest(reader).await.ends_with(b"]}\n"));
        }
        assert_eq!(ends, [false, false, false]);
        assert!(rest(begin("").await).await.ends_with(b"]}\n"));
    }
}
