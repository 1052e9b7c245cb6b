use super::*;
use crate::Value;
use pintle_tree::json;

fn pairs(query: &str) -> Vec<(&str, &str)> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).collect()
}

/// Code, message and causes of a failure; `None` on success.
fn failure<T>(result: Result<T, Status>) -> Option<(u16, String, Vec<String>)> {
    let status = result.err()?;
    let causes = status.details.unwrap_or_default().causes;
    Some((status.code, status.message, causes.into_iter().map(|cause| cause.message).collect()))
}

fn message<T>(result: Result<T, Status>) -> String {
    failure(result).map(|(code, message, _)| format!("{code} {message}")).unwrap_or_default()
}

#[test]
fn list_options_say_what_is_wrong() {
    let prefix = "422 ListOptions.meta.k8s.io \"\" is invalid: ";
    let rows = [
        ("", ""),
        ("foo=bar&limit=5&timeoutSeconds=7", ""),
        ("limit=-1&watch=0", ""),
        ("limit=1.5", "400 strconv.ParseInt: parsing \"1.5\": invalid syntax"),
        ("limit=", "400 strconv.ParseInt: parsing \"\": invalid syntax"),
        (
            "limit=99999999999999999999",
            "400 strconv.ParseInt: parsing \"99999999999999999999\": value out of range",
        ),
        ("timeoutSeconds=soon", "400 strconv.ParseInt: parsing \"soon\": invalid syntax"),
        ("labelSelector=,", "400 found ',', expected: !, identifier, or 'end of string'"),
        ("fieldSelector=a", "400 invalid selector: 'a'; can't understand 'a'"),
        (
            "resourceVersionMatch=Exact",
            "{}resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
        ),
        (
            "resourceVersionMatch=exact&resourceVersion=1",
            "{}resourceVersionMatch: Unsupported value: \"exact\": supported values: \"Exact\", \"NotOlderThan\", \"\"",
        ),
        (
            "resourceVersionMatch=Exact&resourceVersion=0",
            "{}resourceVersionMatch: Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
        ),
        (
            "resourceVersionMatch=Exact&resourceVersion=1&continue=x",
            "{}resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided",
        ),
        ("sendInitialEvents=true", "{}sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"),
        ("watch=1", ""),
        ("watch=true&resourceVersion=abc", ""),
        (
            "watch=1&sendInitialEvents=true",
            "{}resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        ),
        (
            "watch=1&sendInitialEvents=true&resourceVersionMatch=Exact",
            "{}[resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to \
             NotOlderThan, resourceVersionMatch: Unsupported value: \"Exact\": supported values: \"NotOlderThan\"]",
        ),
        (
            "watch=1&resourceVersionMatch=NotOlderThan",
            "{}resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is \
             provided",
        ),
        (
            "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&continue=x",
            "{}resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided",
        ),
    ];
    for (query, expected) in rows {
        let expected = expected.replace("{}", prefix);
        assert_eq!(message(ListOptions::parse(pairs(query), true)), expected, "{query}");
    }
}

#[test]
fn watches_have_no_initial_events_on_a_server_that_does_not_stream_lists() {
    let query = "watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan";
    let expected = "422 ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is \
                    forbidden for watch unless the WatchList feature gate is enabled";
    assert_eq!(message(ListOptions::parse(pairs(query), false)), expected);
    let legacy = ListOptions::parse(pairs("watch=1"), false).unwrap();
    assert_eq!((legacy.send_initial_events, legacy.resource_version_match), (None, None));
}

#[test]
fn watches_from_nowhere_begin_with_the_present_state() {
    let rows = [
        ("watch=1", Some(true)),
        ("watch=1&resourceVersion=0", Some(true)),
        ("watch=1&resourceVersion=5", None),
        ("resourceVersion=0", None),
        ("watch=1&sendInitialEvents=0&resourceVersionMatch=NotOlderThan", Some(false)),
    ];
    for (query, expected) in rows {
        let options = ListOptions::parse(pairs(query), true).unwrap();
        assert_eq!(options.send_initial_events, expected, "{query}");
    }
}

#[test]
fn lists_start_where_they_say() {
    let token = crate::continue_token::ContinueToken {
        resource_version: Some(3),
        start_key: "/registry/pods/a".to_owned(),
    };
    let prefix = "/registry/pods/";
    let page = format!("continue={}", token.encode(prefix));
    let forbidden = format!("{page}&resourceVersion=5");
    let rows = [
        ("", Ok(ListStart::Latest)),
        ("limit=5", Ok(ListStart::Latest)),
        ("resourceVersion=0", Ok(ListStart::Any)),
        ("resourceVersion=0&limit=5", Ok(ListStart::Any)),
        ("resourceVersion=00", Ok(ListStart::Any)),
        ("resourceVersion=00&limit=5", Ok(ListStart::Latest)),
        ("resourceVersion=00&limit=5&resourceVersionMatch=NotOlderThan", Ok(ListStart::Any)),
        ("resourceVersion=00&resourceVersionMatch=Exact", Ok(ListStart::Latest)),
        ("resourceVersion=7", Ok(ListStart::NotOlderThan(7))),
        ("resourceVersion=7&limit=5", Ok(ListStart::Exact(7))),
        ("resourceVersion=7&limit=5&resourceVersionMatch=NotOlderThan", Ok(ListStart::NotOlderThan(7))),
        ("resourceVersion=7&resourceVersionMatch=Exact", Ok(ListStart::Exact(7))),
        (page.as_str(), Ok(ListStart::Continue(token))),
        (forbidden.as_str(), Err("400 specifying resource version is not allowed when using continue")),
        (
            "resourceVersion=abc",
            Err(
                "400 invalid resource version: resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \
                 \"abc\": invalid syntax",
            ),
        ),
        (
            "resourceVersion=-1",
            Err(
                "400 invalid resource version: resourceVersion: Invalid value: \"-1\": strconv.ParseUint: parsing \
                 \"-1\": invalid syntax",
            ),
        ),
    ];
    for (query, expected) in rows {
        let start = ListOptions::parse(pairs(query), true).unwrap().start(prefix, false);
        match expected {
            Ok(expected) => assert_eq!(start, Ok(expected), "{query}"),
            Err(expected) => assert_eq!(message(start), expected, "{query}"),
        }
    }
}

#[test]
fn a_list_of_one_key_has_no_pages() {
    let options = ListOptions::parse(pairs("limit=1&resourceVersion=5"), true).unwrap();
    assert_eq!(options.start("/registry/pods/", false), Ok(ListStart::Exact(5)));
    assert_eq!(options.start("/registry/pods/", true), Ok(ListStart::NotOlderThan(5)));
}

#[test]
fn versions_that_are_no_numbers_fail_as_they_always_did() {
    assert_eq!(
        message(parse_resource_version("abc")),
        "500 resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": invalid syntax"
    );
    assert_eq!(parse_resource_version("0"), Ok(0));
    let watch = ListOptions::parse(pairs("watch=1&resourceVersion=x"), true).unwrap();
    assert_eq!(failure(watch.watch_revision()).map(|(code, ..)| code), Some(500));
}

#[test]
fn write_options_say_what_is_wrong() {
    let long = format!("fieldManager={}", "m".repeat(129));
    let rows = [
        ("CreateOptions", "dryRun=All&dryRun=All&fieldManager=m&fieldValidation=Strict", ""),
        (
            "CreateOptions",
            "dryRun=",
            "422 CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"\"]: supported values: \"All\"",
        ),
        (
            "UpdateOptions",
            "dryRun=all&dryRun=All",
            "422 UpdateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"all\",\"All\"]: supported \
             values: \"All\"",
        ),
        (
            "UpdateOptions",
            "fieldValidation=strict",
            "422 UpdateOptions.meta.k8s.io \"\" is invalid: fieldValidation: Unsupported value: \"strict\": supported \
             values: \"\", \"Ignore\", \"Strict\", \"Warn\"",
        ),
        (
            "CreateOptions",
            long.as_str(),
            "422 CreateOptions.meta.k8s.io \"\" is invalid: fieldManager: Too long: may not be more than 128 bytes",
        ),
        (
            "PatchOptions",
            "force=true",
            "422 PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified for non-apply patch",
        ),
        ("CreateOptions", "force=true", ""),
    ];
    for (kind, query, expected) in rows {
        assert_eq!(message(WriteOptions::parse(pairs(query), kind)), expected, "{query}");
    }
    assert_eq!(
        message(WriteOptions::parse_apply(pairs("force=1"))),
        "422 PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch"
    );
    let apply = WriteOptions::parse_apply(pairs("force=maybe&fieldManager=m")).unwrap();
    assert!(apply.force && !apply.dry_run);
}

#[test]
fn delete_options_say_what_is_wrong() {
    let prefix = "422 DeleteOptions.meta.k8s.io \"\" is invalid: ";
    let policies = "supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"";
    let rows = [
        (json!(null), "gracePeriodSeconds=-3&orphanDependents=perhaps&foo=bar", String::new()),
        (
            json!(null),
            "gracePeriodSeconds=1.5",
            "400 strconv.ParseInt: parsing \"1.5\": invalid syntax".to_owned(),
        ),
        (
            json!(null),
            "propagationPolicy=Up",
            format!("{prefix}propagationPolicy: Unsupported value: \"Up\": {policies}"),
        ),
        (
            json!({"propagationPolicy": "Background", "orphanDependents": true}),
            "propagationPolicy=Up",
            format!(
                "{prefix}propagationPolicy: Invalid value: \"Background\": orphanDependents and deletionPropagation \
                 cannot be both set"
            ),
        ),
        (
            json!({"dryRun": ["Some"]}),
            "",
            format!("{prefix}dryRun: Unsupported value: [\"Some\"]: supported values: \"All\""),
        ),
        (
            json!({"ignoreStoreReadErrorWithClusterBreakingPotential": true, "gracePeriodSeconds": 0}),
            "",
            format!(
                "{prefix}ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: true: cannot be set together \
                 with .gracePeriodSeconds"
            ),
        ),
    ];
    for (body, query, expected) in rows {
        assert_eq!(message(delete_options_from(&body, pairs(query), true)), expected, "{body} {query}");
    }
}

#[test]
fn an_unsafe_delete_can_be_asked_for_where_there_is_one() {
    let body = json!({"ignoreStoreReadErrorWithClusterBreakingPotential": true});
    let query = "ignoreStoreReadErrorWithClusterBreakingPotential=true";
    for unsafe_deletes in [true, false] {
        for (body, query) in [(&body, ""), (&Value::Null, query)] {
            let options = delete_options_from(body, pairs(query), unsafe_deletes).unwrap();
            assert_eq!(options.ignore_store_read_error, unsafe_deletes);
        }
    }
    let together = json!({"ignoreStoreReadErrorWithClusterBreakingPotential": true, "dryRun": ["All"]});
    assert!(delete_options_from(&together, pairs(""), true).is_err());
    assert!(delete_options_from(&together, pairs(""), false).is_ok());
}

#[test]
fn a_body_hides_the_query_of_a_delete() {
    let body = json!({"gracePeriodSeconds": 5, "preconditions": {"uid": "u"}, "dryRun": ["All"]});
    let query = "gracePeriodSeconds=7&propagationPolicy=Orphan&resourceVersion=3";
    assert_eq!(
        delete_options_from(&body, pairs(query), true),
        Ok(DeleteOptions {
            grace_period_seconds: Some(5),
            preconditions: Preconditions::uid("u"),
            dry_run: true,
            ..DeleteOptions::default()
        })
    );
    assert_eq!(
        delete_options_from(&Value::Null, pairs(query), true),
        Ok(DeleteOptions {
            grace_period_seconds: Some(7),
            preconditions: Preconditions::resource_version("3"),
            propagation_policy: Some(PropagationPolicy::Orphan),
            ..DeleteOptions::default()
        })
    );
}

#[test]
fn tables_include_what_they_are_asked_for() {
    assert_eq!(IncludeObject::parse(""), Ok(IncludeObject::Metadata));
    assert_eq!(
        IncludeObject::parse("Some").unwrap_err().to_string(),
        "includeObject: Invalid value: \"Some\": must be 'Metadata', 'Object', 'None', or empty"
    );
}
