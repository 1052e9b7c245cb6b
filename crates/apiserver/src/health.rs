//! `/healthz`, `/livez` and `/readyz`
//! (<https://kubernetes.io/docs/reference/using-api/health-checks/>).

mod health_metrics;

use crate::base::{
    query::Query,
    recurrence::Recurrence,
    response::{Measured, Response, not_found, text},
};
use crate::metrics::Format;
use health_metrics::HealthMetrics;
use http::HeaderValue;
use parking_lot::{Mutex, RwLock};
use pintle_go_forms::quote;
use pintle_supervisor::Supervisor;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use tokio::{sync::watch, time::Instant};

/// A health check: `Err` has the reason of the failure.
pub type Check = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// The endpoints that run a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckScope {
    /// All endpoints.
    Always,
    /// `/healthz` and `/readyz`, but not `/livez`: a restart would not help.
    NotLive,
    /// `/healthz` and `/livez`, but not `/readyz`.
    NotReady,
    /// Only `/readyz`.
    ReadyOnly,
}

/// All checks of a server, in the order in which they were added. Dead tasks of the supervisor fail their checks.
pub struct Health {
    checks: RwLock<Vec<NamedCheck>>,
    supervisor: Supervisor,
    /// Until when `/livez` reports no failure.
    livez_grace: RwLock<Option<Instant>>,
    metrics: HealthMetrics,
    /// The failures of each check: anybody may ask for health, as often as they like.
    failures: Mutex<BTreeMap<String, Recurrence>>,
}

#[derive(Clone)]
struct NamedCheck {
    name: String,
    /// A group name by which the check can be excluded, too.
    group: Option<&'static str>,
    scope: CheckScope,
    check: Check,
}

impl Health {
    /// The two checks that every server has. A dead task of `supervisor` fails the check of the same name; without such
    /// a check, it appears as a failed check of its own.
    pub fn new(supervisor: Supervisor) -> Health {
        let health = Health {
            checks: RwLock::default(),
            supervisor,
            livez_grace: RwLock::default(),
            metrics: HealthMetrics::default(),
            failures: Mutex::default(),
        };
        health.add("ping", CheckScope::Always, Arc::new(|| Ok(())));
        health.add("log", CheckScope::Always, Arc::new(|| Ok(())));
        health
    }

    /// Makes `/livez` pass for a time: a server that starts slowly is not restarted by its liveness probe.
    pub fn set_livez_grace_period(&self, period: Duration) {
        *self.livez_grace.write() = Instant::now().checked_add(period);
    }

    fn has_livez_grace(&self) -> bool {
        self.livez_grace.read().is_some_and(|end| Instant::now() < end)
    }

    /// Adds a check.
    pub fn add(&self, name: &str, scope: CheckScope, check: Check) {
        self.checks.write().push(NamedCheck { name: name.to_owned(), group: None, scope, check });
    }

    /// Adds a check to a group: excluding the group by name excludes all of its checks.
    pub fn add_to_group(&self, group: &'static str, name: &str, scope: CheckScope, check: Check) {
        self.checks.write().push(NamedCheck { name: name.to_owned(), group: Some(group), scope, check });
    }

    /// Adds the check of a post-start hook, `poststarthook/NAME`: it fails until the hook has started, and while
    /// `is_finished` is false.
    pub(crate) fn hook(
        &self,
        name: &str,
        is_finished: impl Fn() -> bool + Send + Sync + 'static,
    ) -> HookCheck {
        let hook = HookCheck::default();
        let started = hook.0.clone();
        let check = move || match *started.borrow() && is_finished() {
            true => Ok(()),
            false => Err("not finished".to_owned()),
        };
        self.add(&format!("poststarthook/{name}"), CheckScope::Always, Arc::new(check));
        hook
    }

    /// Forgets the results of the checks in the metrics.
    pub(crate) fn reset_metrics(&self) {
        self.metrics.reset();
    }

    /// The results of the checks as metrics, in a format.
    pub(crate) fn encode_metrics(&self, format: Format) -> Vec<u8> {
        self.metrics.encode(format)
    }

    fn all_checks(&self) -> Vec<NamedCheck> {
        let mut checks = self.checks.read().clone();
        for part in self.supervisor.dead() {
            let is_dead: Check = Arc::new(|| Err("it has panicked".to_owned()));
            match checks.iter_mut().find(|check| *check.name == *part) {
                Some(check) => (check.scope, check.check) = (CheckScope::Always, is_dead),
                None => checks.push(NamedCheck {
                    name: part.to_string(),
                    group: None,
                    scope: CheckScope::Always,
                    check: is_dead,
                }),
            }
        }
        checks
    }

    /// The paths of all endpoints and checks.
    pub fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        for root in ["healthz", "livez", "readyz"] {
            paths.push(format!("/{root}"));
            let checks = self.checks.read();
            let asked = checks.iter().filter(|check| asks(root, check.scope));
            paths.extend(asked.map(|check| format!("/{root}/{}", check.name)));
        }
        paths
    }

    /// Answers a health path; `None` for other paths.
    pub fn serve(&self, path: &str, query: &Query) -> Option<Response> {
        let path = path.strip_prefix('/')?;
        let (root, one) = match path.split_once('/') {
            None => (path, None),
            Some((root, one)) => (root, Some(one)),
        };
        if !matches!(root, "healthz" | "livez" | "readyz") {
            return None;
        }
        let measured = match (root, one) {
            ("healthz", None) => Some("/healthz"),
            ("livez", None) => Some("/livez"),
            ("readyz", None) => Some("/readyz"),
            _ => None,
        };
        let mut response = self.run(root, one, query);
        if let Some(subresource) = measured {
            response.extensions_mut().insert(Measured { resource: "", subresource, component: "" });
        }
        Some(response)
    }

    /// Runs the checks of an endpoint, or one of them.
    fn run(&self, root: &str, one: Option<&str>, query: &Query) -> Response {
        let mut checks = self.all_checks();
        if root == "livez" && self.has_livez_grace() {
            checks.iter_mut().for_each(|check| check.check = Arc::new(|| Ok(())));
        }
        let mut checks: Vec<_> = checks.iter().filter(|check| asks(root, check.scope)).collect();
        if let Some(one) = one {
            checks.retain(|check| check.name == one);
            let Some(check) = checks.first() else { return not_found() };
            return match (check.check)() {
                Ok(()) => text(200, "ok"),
                Err(why) => failed_text(format!("internal server error: {why}\n")),
            };
        }
        let excluded: BTreeSet<&str> =
            query.pairs().filter(|(name, _)| *name == "exclude").map(|(_, value)| value).collect();
        let mut unknown = excluded.clone();
        let mut report = String::new();
        let mut has_failed = false;
        for NamedCheck { name, group, check, .. } in checks {
            if excluded.contains(name.as_str()) {
                unknown.remove(name.as_str());
                report.push_str(&format!("[+]{name} excluded: ok\n"));
                continue;
            }
            if let Some(group) = group.filter(|group| excluded.contains(group)) {
                unknown.remove(group);
                report.push_str(&format!("[+]{name} excluded with {group}: ok\n"));
                continue;
            }
            let result = check();
            self.metrics.ran(root, name, result.is_ok());
            match result {
                Ok(()) => report.push_str(&format!("[+]{name} ok\n")),
                Err(why) => {
                    let failures = self.failures.lock().entry(name.clone()).or_default().due();
                    if let Some(failures) = failures {
                        tracing::warn!(check = name, why, failures, "health check failed");
                    }
                    // The reason goes to the log only: the endpoint is open to everybody.
                    report.push_str(&format!("[-]{name} failed: reason withheld\n"));
                    has_failed = true;
                }
            }
        }
        if !unknown.is_empty() {
            let unknown: Vec<String> = unknown.into_iter().map(quote).collect();
            let names = unknown.join(",");
            report
                .push_str(&format!("warn: some health checks cannot be excluded: no matches for {names}\n"));
        }
        if has_failed {
            return failed_text(format!("{report}{root} check failed\n"));
        }
        match query.first("verbose").is_some() {
            true => ok_text(format!("{report}{root} check passed\n")),
            false => ok_text("ok".to_owned()),
        }
    }
}

/// The start-up state of a post-start hook.
#[derive(Default)]
pub(crate) struct HookCheck(watch::Sender<bool>);

impl HookCheck {
    /// Reports that the hook has started.
    pub(crate) fn set_started(&self) {
        self.0.send_replace(true);
    }

    /// Whether the hook has started.
    pub(crate) fn has_started(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until the hook has started.
    pub(crate) async fn started(&self) {
        // The sender is this value.
        drop(self.0.subscribe().wait_for(|started| *started).await);
    }
}

fn asks(root: &str, scope: CheckScope) -> bool {
    match scope {
        CheckScope::Always => true,
        CheckScope::NotLive => root != "livez",
        CheckScope::NotReady => root != "readyz",
        CheckScope::ReadyOnly => root == "readyz",
    }
}

fn ok_text(body: String) -> Response {
    with_nosniff(text(200, body))
}

fn failed_text(body: String) -> Response {
    with_nosniff(text(500, body))
}

fn with_nosniff(mut response: Response) -> Response {
    response.headers_mut().insert(http::header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::body::Body;

    fn ask(health: &Health, uri: &str) -> Option<(u16, String)> {
        let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
        let response = health.serve(path, &Query::parse(query))?;
        let code = response.status().as_u16();
        let Body::Full(Some(bytes)) = response.into_body() else { panic!("{uri}: no text") };
        Some((code, String::from_utf8(bytes.to_vec()).unwrap()))
    }

    #[tokio::test]
    async fn reports_are_kube_apiserver_s() {
        let health = Health::new(Supervisor::current());
        health.add("part", CheckScope::NotReady, Arc::new(|| Ok(())));
        health.add("ready", CheckScope::ReadyOnly, Arc::new(|| Err("no".to_owned())));
        let check = |uri: &str, code: u16, expected: &str| {
            assert_eq!(ask(&health, uri), Some((code, expected.to_owned())), "{uri}");
        };
        check("/healthz", 200, "ok");
        check("/livez?verbose", 200, "[+]ping ok\n[+]log ok\n[+]part ok\nlivez check passed\n");
        check(
            "/livez?verbose=false&exclude=log",
            200,
            "[+]ping ok\n[+]log excluded: ok\n[+]part ok\nlivez check passed\n",
        );
        check(
            "/livez?exclude=b&verbose&exclude=a,b",
            200,
            "[+]ping ok\n[+]log ok\n[+]part ok\nwarn: some health checks cannot be excluded: no matches for \"a,b\",\"b\"\n\
             livez check passed\n",
        );
        check("/livez?exclude=b", 200, "ok");
        check("/livez/part", 200, "ok");
        check(
            "/readyz",
            500,
            "[+]ping ok\n[+]log ok\n[-]ready failed: reason withheld\nreadyz check failed\n",
        );
        check("/readyz/ready", 500, "internal server error: no\n");
        check("/readyz?exclude=ready", 200, "ok");
        for unknown in ["/readyz/part", "/livez/", "/livez/nothing", "/healthz/ready"] {
            check(unknown, 404, "404 page not found\n");
        }
        assert_eq!(ask(&health, "/health"), None);
        assert_eq!(ask(&health, "//healthz"), None);
    }

    #[tokio::test]
    async fn checks_are_excluded_with_their_group() {
        let health = Health::new(Supervisor::current());
        let fails: Check = Arc::new(|| Err("no".to_owned()));
        health.add_to_group("part", "part", CheckScope::Always, fails.clone());
        health.add_to_group("part", "part-1", CheckScope::Always, fails);
        let report = "[+]ping ok\n[+]log ok\n[+]part excluded: ok\n[+]part-1 excluded with part: ok\nlivez check passed\n";
        assert_eq!(ask(&health, "/livez?exclude=part&verbose"), Some((200, report.to_owned())));
        assert_eq!(ask(&health, "/livez?exclude=part-1").unwrap().0, 500);
    }

    #[tokio::test]
    async fn a_hook_fails_until_it_has_started_and_when_it_has_died() {
        let supervisor = Supervisor::current();
        let health = Health::new(supervisor.clone());
        let hook = health.hook("part", || true);
        health.hook("other", || true).set_started();
        let report = || ask(&health, "/livez?verbose").unwrap().1;
        assert_eq!(ask(&health, "/livez/poststarthook/part").unwrap().0, 500);
        hook.set_started();
        let well = "[+]ping ok\n[+]log ok\n[+]poststarthook/part ok\n[+]poststarthook/other ok\nlivez check passed\n";
        assert_eq!(report(), well);
        supervisor.spawn("poststarthook/part", async { panic!("as asked") }).await.unwrap();
        let dead = well.replace("[+]poststarthook/part ok", "[-]poststarthook/part failed: reason withheld");
        assert_eq!(report(), dead.replace("passed", "failed"));
    }

    #[tokio::test]
    async fn a_dead_part_fails_the_check_of_its_name_and_one_without_a_check_all_the_same() {
        let supervisor = Supervisor::current();
        let health = Health::new(supervisor.clone());
        health.add("poststarthook/roles", CheckScope::Always, Arc::new(|| Ok(())));
        let status =
            |path: &str| health.serve(path, &Query::parse("")).map(|response| response.status().as_u16());
        assert_eq!(status("/livez"), Some(200));
        for part in ["poststarthook/roles", "watch-cache/pods"] {
            supervisor.spawn(part, async { panic!("as asked") }).await.unwrap();
        }
        for root in ["healthz", "livez", "readyz"] {
            assert_eq!(status(&format!("/{root}")), Some(500), "{root}");
        }
        assert_eq!(status("/livez/poststarthook/roles"), Some(500));
        assert_eq!(status("/livez/watch-cache/pods"), Some(500));
        assert_eq!(status("/livez/ping"), Some(200));
    }

    #[tokio::test(start_paused = true)]
    async fn livez_passes_during_its_grace_period() {
        let health = Health::new(Supervisor::current());
        health.add("broken", CheckScope::Always, Arc::new(|| Err("why".to_owned())));
        let status = |path: &str| health.serve(path, &Query::parse("")).unwrap().status().as_u16();
        assert_eq!(status("/livez"), 500);
        health.set_livez_grace_period(Duration::from_secs(10));
        assert_eq!([status("/livez"), status("/livez/broken"), status("/readyz")], [200, 200, 500]);
        tokio::time::advance(Duration::from_secs(11)).await;
        assert_eq!(status("/livez"), 500);
    }
}
