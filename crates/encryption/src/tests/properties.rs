//! Properties of all values.

use super::{Fixture, keyed};
use proptest::prelude::*;
use std::sync::LazyLock;
use tokio::runtime::Runtime;

const KEY: &str = "/registry/secrets/default/a";

struct Providers {
    runtime: Runtime,
    all: Vec<(&'static str, Fixture)>,
}

static PROVIDERS: LazyLock<Providers> = LazyLock::new(|| {
    let runtime = Runtime::new().unwrap();
    let kinds = ["aescbc", "aesgcm", "secretbox"];
    let all = runtime.block_on(async {
        let mut all = Vec::new();
        for kind in kinds {
            let rule = format!("- resources: [secrets]\n  providers:\n{}", keyed(kind, &[("one", 1)]));
            all.push((kind, Fixture::load(&rule).await));
        }
        all
    });
    Providers { runtime, all }
});

proptest! {
    #[test]
    fn values_come_back(value in prop::collection::vec(any::<u8>(), 0..300)) {
        let providers = &*PROVIDERS;
        for (kind, fixture) in &providers.all {
            let opened = providers.runtime.block_on(async {
                let stored = fixture.seal("secrets", KEY, &value).await.unwrap();
                assert!(value.len() < 8 || !stored.windows(value.len()).any(|window| window == value));
                fixture.open("secrets", KEY, &stored).await.unwrap()
            });
            prop_assert_eq!(&opened.value.bytes, &value, "{}", kind);
            prop_assert!(!opened.stale);
        }
    }

    #[test]
    fn damage_is_found(
        value in prop::collection::vec(any::<u8>(), 1..200),
        at in any::<prop::sample::Index>(),
        change in 1..=255u8,
        cut in any::<prop::sample::Index>(),
    ) {
        let providers = &*PROVIDERS;
        for (kind, fixture) in providers.all.iter().filter(|(kind, _)| *kind != "aescbc") {
            let (changed, shortened) = providers.runtime.block_on(async {
                let stored = fixture.seal("secrets", KEY, &value).await.unwrap();
                let mut changed = stored.to_vec();
                changed[at.index(stored.len())] ^= change;
                let shortened = &stored[..cut.index(stored.len())];
                (
                    fixture.open("secrets", KEY, &changed).await,
                    fixture.open("secrets", KEY, shortened).await,
                )
            });
            prop_assert!(changed.is_err(), "{}", kind);
            prop_assert!(shortened.is_err(), "{}", kind);
        }
    }

    #[test]
    fn values_are_bound_to_their_key(
        value in prop::collection::vec(any::<u8>(), 0..100),
        other in "/registry/secrets/[a-z]{1,9}/[b-z]{1,9}",
    ) {
        let providers = &*PROVIDERS;
        let (_, fixture) = providers.all.iter().find(|(kind, _)| *kind == "aesgcm").unwrap();
        let moved = providers.runtime.block_on(async {
            let stored = fixture.seal("secrets", KEY, &value).await.unwrap();
            fixture.open("secrets", &other, &stored).await
        });
        prop_assert_eq!(moved.unwrap_err().0, "cipher: message authentication failed");
    }

    #[test]
    fn no_bytes_make_it_panic(
        provider in 0..3usize,
        is_known in any::<bool>(),
        bytes in prop::collection::vec(any::<u8>(), 0..120),
    ) {
        let providers = &*PROVIDERS;
        let (kind, fixture) = &providers.all[provider];
        let mut stored = if is_known { format!("k8s:enc:{kind}:v1:one:").into_bytes() } else { Vec::new() };
        stored.extend_from_slice(&bytes);
        // AES-CBC may decrypt some of them: it has no authentication.
        let opened = providers.runtime.block_on(fixture.open("secrets", KEY, &stored));
        prop_assert!(opened.is_err() || *kind == "aescbc");
    }
}
