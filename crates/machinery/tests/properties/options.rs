use pintle_machinery::Value;
use pintle_machinery::continue_token::ContinueToken;
use pintle_machinery::options::{ListOptions, WriteOptions, delete_options_from};
use proptest::prelude::*;

fn names() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "labelSelector",
        "fieldSelector",
        "watch",
        "resourceVersion",
        "resourceVersionMatch",
        "timeoutSeconds",
        "limit",
        "continue",
        "sendInitialEvents",
        "dryRun",
        "fieldManager",
        "fieldValidation",
        "force",
        "propagationPolicy",
        "orphanDependents",
        "gracePeriodSeconds",
        "uid",
    ])
}

fn values() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec!["", "0", "1", "true", "Exact", "NotOlderThan", "All", "Orphan", "a=b"])
            .prop_map(str::to_owned),
        ".*",
    ]
}

proptest! {
    #[test]
    fn options_are_right_or_a_status(pairs in prop::collection::vec((names(), values()), 0..6)) {
        let pairs = || pairs.iter().map(|(name, value)| (*name, value.as_str()));
        if let Ok(options) = ListOptions::parse(pairs(), true) {
            let _ = (options.start("/registry/pods/", true), options.watch_revision());
        }
        for status in [
            ListOptions::parse(pairs(), true).err(),
            WriteOptions::parse(pairs(), "PatchOptions").err(),
            WriteOptions::parse_apply(pairs()).err(),
            delete_options_from(&Value::Null, pairs(), true).err(),
        ].into_iter().flatten() {
            prop_assert!(matches!(status.code, 400 | 422));
        }
    }

    #[test]
    fn tokens_come_back(rv in 1..=i64::MAX as u64, parts in prop::collection::vec("[a-z0-9.-]*[a-z0-9]", 1..4)) {
        let prefix = "/registry/pods/";
        let token = ContinueToken { resource_version: Some(rv), start_key: format!("{prefix}{}\0", parts.join("/")) };
        prop_assert_eq!(ContinueToken::decode(&token.encode(prefix), prefix), Ok(token));
    }
}
