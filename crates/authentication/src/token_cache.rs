//! Caches the authentication of tokens.

mod metrics;

pub use metrics::TokenCacheMetrics;

use crate::expiring_cache::{CacheKey, ExpiringCache, KeyMaker};
use futures_util::{
    FutureExt,
    future::{Shared, WeakShared},
};
use metrics::Fetch;
use parking_lot::Mutex;
use pintle_auth::{
    BoxFuture,
    authn::{Authentication, InvalidCredentials, TokenAuthenticator},
};
use std::{collections::HashMap, iter::once, sync::Arc, time::Duration};
use tokio::{
    task::JoinHandle,
    time::{Instant, timeout},
};

/// The configuration of a token cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenCacheConfig {
    /// How long a successful authentication is cached; zero disables caching it.
    pub success_ttl: Duration,
    /// How long an unrecognized token is cached; zero disables caching it.
    pub failure_ttl: Duration,
    /// Whether errors are cached like unrecognized tokens.
    pub keeps_errors: bool,
}

/// Caches an authenticator's results, and calls it once for concurrent requests with the same token.
///
/// A call continues when its first requester is cancelled, as long as others wait for it, and ends after thirty seconds. Without
/// requesters it is cancelled: clients that do not wait would otherwise choose how much memory their tokens take.
pub struct TokenCache(Arc<Inner>);

/// A call in flight, whose result several requests may await.
type Question = Shared<BoxFuture<'static, Authentication>>;
type WeakQuestion = WeakShared<BoxFuture<'static, Authentication>>;

struct Inner {
    authenticator: Arc<dyn TokenAuthenticator>,
    config: TokenCacheConfig,
    keys: KeyMaker,
    cache: ExpiringCache<Authentication>,
    /// The calls in flight. The lock is held for lookups only.
    open: Mutex<OpenCalls>,
    metrics: Option<TokenCacheMetrics>,
}

#[derive(Default)]
struct OpenCalls {
    /// By key, with their numbers.
    calls: HashMap<CacheKey, (u64, WeakQuestion)>,
    /// The number of calls so far.
    count: u64,
}

/// The capacity in tokens, Kubernetes' own: twice the tokens of 5,000 nodes and 10,000 namespaces.
const CAPACITY: usize = 32 * 1024;
const QUESTION_TIMEOUT: Duration = Duration::from_secs(30);

impl TokenCache {
    /// A cache in front of an authenticator.
    pub fn new(authenticator: Arc<dyn TokenAuthenticator>, config: TokenCacheConfig) -> TokenCache {
        TokenCache::with_capacity(authenticator, config, CAPACITY, None)
    }

    /// A cache that records metrics.
    pub fn with_metrics(
        authenticator: Arc<dyn TokenAuthenticator>,
        config: TokenCacheConfig,
        metrics: TokenCacheMetrics,
    ) -> TokenCache {
        TokenCache::with_capacity(authenticator, config, CAPACITY, Some(metrics))
    }

    fn with_capacity(
        authenticator: Arc<dyn TokenAuthenticator>,
        config: TokenCacheConfig,
        capacity: usize,
        metrics: Option<TokenCacheMetrics>,
    ) -> TokenCache {
        TokenCache(Arc::new(Inner {
            authenticator,
            config,
            keys: KeyMaker::new(),
            cache: ExpiringCache::new(capacity),
            open: Mutex::default(),
            metrics,
        }))
    }
}

impl Inner {
    /// The call in flight for a key, or a new one.
    fn question(self: &Arc<Self>, key: CacheKey, token: &str, audiences: &[String]) -> Question {
        let mut open = self.open.lock();
        if let Some(question) = open.calls.get(&key).and_then(|(_, question)| question.upgrade()) {
            return question;
        }
        open.count += 1;
        // It belongs to the requesters and not to the task, which may be aborted before it has begun.
        let closed = Closed { inner: self.clone(), key, number: open.count };
        let (inner, token, audiences) = (self.clone(), token.to_owned(), audiences.to_vec());
        let mut task = AbortOnDrop(tokio::spawn(async move {
            let fetch = inner.metrics.as_ref().map(|metrics| Fetch::start(metrics.clone()));
            let answer = inner.ask(key, &token, &audiences).await;
            if let Some(fetch) = fetch {
                fetch.end(answer.is_ok());
            }
            answer
        }));
        let answer: BoxFuture<'static, Authentication> = Box::pin(async move {
            let _closed = closed;
            // The panic hook has logged the panic.
            (&mut task.0).await.unwrap_or_else(|error| {
                Err(InvalidCredentials::new(format!("authentication failed unexpectedly: {error}")))
            })
        });
        let question = answer.shared();
        if let Some(weak) = question.downgrade() {
            let number = open.count;
            open.calls.insert(key, (number, weak));
        }
        question
    }

    async fn ask(&self, key: CacheKey, token: &str, audiences: &[String]) -> Authentication {
        // Another call may have ended between the cache lookup and this one.
        if let Some(answer) = self.cache.get(&key) {
            return answer;
        }
        let answer = self.authenticator.authenticate_token(token, audiences);
        let Ok(answer) = timeout(QUESTION_TIMEOUT, answer).await else {
            return Err(InvalidCredentials::new("context deadline exceeded".to_owned()));
        };
        let ttl = match &answer {
            Ok(Some(_)) => self.config.success_ttl,
            Err(_) if !self.config.keeps_errors => Duration::ZERO,
            Ok(None) | Err(_) => self.config.failure_ttl,
        };
        if !ttl.is_zero() {
            self.cache.insert(key, answer.clone(), Instant::now() + ttl);
        }
        answer
    }
}

/// Ends a task when it is dropped: nobody waits for its result.
struct AbortOnDrop(JoinHandle<Authentication>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Removes a call from those in flight when it is dropped: when it has ended, or nobody waits for it any more.
struct Closed {
    inner: Arc<Inner>,
    key: CacheKey,
    number: u64,
}

impl Drop for Closed {
    fn drop(&mut self) {
        let mut open = self.inner.open.lock();
        // Another call for the key may have begun in the meantime.
        if open.calls.get(&self.key).is_some_and(|(number, _)| *number == self.number) {
            open.calls.remove(&self.key);
        }
    }
}

impl TokenAuthenticator for TokenCache {
    fn authenticate_token<'a>(
        &'a self,
        token: &'a str,
        audiences: &'a [String],
    ) -> BoxFuture<'a, Authentication> {
        Box::pin(async move {
            let inner = &self.0;
            let began = Instant::now();
            let parts = once(token.as_bytes()).chain(audiences.iter().map(|audience| audience.as_bytes()));
            let key = inner.keys.key(parts);
            if let Some(answer) = inner.cache.get(&key) {
                if let Some(metrics) = &inner.metrics {
                    metrics.observe(true, began.elapsed());
                }
                return answer;
            }
            let blocked = inner.metrics.as_ref().map(TokenCacheMetrics::blocked);
            let answer = inner.question(key, token, audiences).await;
            drop(blocked);
            if let Some(metrics) = &inner.metrics {
                metrics.observe(false, began.elapsed());
            }
            answer
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_auth::authn::Authenticated;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::sync::Semaphore;

    /// Counts calls and answers them when its gate opens.
    struct Slow {
        asked: AtomicUsize,
        gate: Semaphore,
    }

    impl Slow {
        fn new(open: usize) -> Arc<Slow> {
            Arc::new(Slow { asked: AtomicUsize::new(0), gate: Semaphore::new(open) })
        }

        fn asked(&self) -> usize {
            self.asked.load(Ordering::SeqCst)
        }
    }

    impl TokenAuthenticator for Slow {
        fn authenticate_token<'a>(
            &'a self,
            token: &'a str,
            audiences: &'a [String],
        ) -> BoxFuture<'a, Authentication> {
            Box::pin(async move {
                self.asked.fetch_add(1, Ordering::SeqCst);
                self.gate.acquire().await.unwrap().forget();
                match token {
                    "panic" => panic!("on purpose"),
                    "wrong" => Err(InvalidCredentials::new("wrong".to_owned())),
                    "unknown" => Ok(None),
                    _ => {
                        Ok(Some(Authenticated { audiences: audiences.to_vec(), ..Authenticated::default() }))
                    }
                }
            })
        }
    }

    const CONFIG: TokenCacheConfig = TokenCacheConfig {
        success_ttl: Duration::from_secs(10),
        failure_ttl: Duration::from_secs(5),
        keeps_errors: false,
    };

    #[tokio::test(start_paused = true)]
    async fn answers_are_kept_as_long_as_they_are_good() {
        let slow = Slow::new(1000);
        let cache = TokenCache::new(slow.clone(), CONFIG);
        let asked_by = async |token: &str, audiences: &[&str]| {
            let before = slow.asked();
            let audiences: Vec<String> = audiences.iter().map(|audience| (*audience).to_owned()).collect();
            // The result does not matter here.
            let _ = cache.authenticate_token(token, &audiences).await;
            slow.asked() - before
        };
        assert_eq!(asked_by("good", &[]).await, 1);
        assert_eq!(asked_by("good", &[]).await, 0);
        assert_eq!(asked_by("good", &["a"]).await, 1, "audiences count");
        assert_eq!(asked_by("unknown", &[]).await, 1);
        assert_eq!(asked_by("unknown", &[]).await, 0);
        assert_eq!(asked_by("wrong", &[]).await, 1);
        assert_eq!(asked_by("wrong", &[]).await, 1, "errors are not kept");
        tokio::time::advance(Duration::from_secs(6)).await;
        assert_eq!(asked_by("unknown", &[]).await, 1);
        assert_eq!(asked_by("good", &[]).await, 0);
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(asked_by("good", &[]).await, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn who_shows_the_same_token_waits_for_the_same_answer() {
        let slow = Slow::new(0);
        let cache = Arc::new(TokenCache::new(slow.clone(), CONFIG));
        let waiting: Vec<_> = (0..50)
            .map(|_| {
                let cache = cache.clone();
                tokio::spawn(async move { cache.authenticate_token("good", &[]).await })
            })
            .collect();
        while slow.asked() == 0 {
            tokio::task::yield_now().await;
        }
        // The first requester is cancelled; the others get the result.
        waiting[0].abort();
        slow.gate.add_permits(1);
        for answer in waiting.into_iter().skip(1) {
            assert!(answer.await.unwrap().unwrap().is_some());
        }
        assert_eq!(slow.asked(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_ends_with_its_last_requester() {
        let slow = Slow::new(0);
        let cache = Arc::new(TokenCache::new(slow.clone(), CONFIG));
        let ask = || {
            let cache = cache.clone();
            tokio::spawn(async move { cache.authenticate_token("good", &[]).await })
        };
        let waiting = [ask(), ask()];
        while slow.asked() == 0 {
            tokio::task::yield_now().await;
        }
        for task in waiting {
            assert_eq!(cache.0.open.lock().calls.len(), 1);
            task.abort();
            assert!(task.await.unwrap_err().is_cancelled());
            tokio::task::yield_now().await;
        }
        assert!(cache.0.open.lock().calls.is_empty());
        slow.gate.add_permits(1);
        assert!(ask().await.unwrap().unwrap().is_some());
        assert_eq!(slow.asked(), 2);
    }

    #[tokio::test]
    async fn a_call_whose_requester_leaves_before_it_begins_leaves_nothing() {
        let slow = Slow::new(0);
        let cache = TokenCache::new(slow.clone(), CONFIG);
        for token in ["a", "b", "a"] {
            let asking = cache.authenticate_token(token, &[]);
            assert!(asking.now_or_never().is_none());
            tokio::task::yield_now().await;
        }
        assert_eq!(slow.asked(), 0);
        assert!(cache.0.open.lock().calls.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_ever() {
        let slow = Slow::new(0);
        let cache = TokenCache::new(slow.clone(), CONFIG);
        let error = cache.authenticate_token("good", &[]).await.unwrap_err();
        assert_eq!(error.reason, "context deadline exceeded");
        slow.gate.add_permits(2);
        assert!(cache.authenticate_token("panic", &[]).await.is_err());
        assert!(cache.authenticate_token("good", &[]).await.unwrap().is_some());
        assert!(cache.0.open.lock().calls.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_tokens_takes_no_more_room() {
        let slow = Slow::new(100_000);
        let cache = TokenCache::with_capacity(slow, CONFIG, 64, None);
        for number in 0..5_000 {
            assert!(cache.authenticate_token(&number.to_string(), &[]).await.is_ok());
        }
        assert!(cache.0.cache.len() <= 64 && cache.0.open.lock().calls.is_empty());
    }
}
