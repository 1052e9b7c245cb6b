//! `/healthz`, `/livez` and `/readyz`
//! (<https://kubernetes.io/docs/reference/using-api/health-checks/>).

use crate::{
    query::Query,
    response::{Response, text},
};
use http::HeaderValue;
use parking_lot::RwLock;
use pintle_supervisor::Supervisor;
use std::sync::Arc;

/// One thing that has to be in order.
pub type Check = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// Which of the endpoints ask a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckScope {
    /// All of them.
    Always,
    /// `/healthz` and `/readyz`, but not `/livez`: a restart would not help.
    NotLive,
    /// Only `/readyz`.
    ReadyOnly,
}

/// All checks of a server, and its parts, which fail them when they are dead.
pub struct Health {
    checks: RwLock<Vec<(String, CheckScope, Check)>>,
    supervisor: Supervisor,
}

impl Health {
    /// Checks with the two that every server has. A part of `supervisor` that is dead fails the check of its name; without
    /// one it is shown as a check that fails.
    pub fn new(supervisor: Supervisor) -> Health {
        let health = Health { checks: RwLock::default(), supervisor };
        health.add("ping", CheckScope::Always, Arc::new(|| Ok(())));
        health.add("log", CheckScope::Always, Arc::new(|| Ok(())));
        health
    }

    /// Adds a check.
    pub fn add(&self, name: &str, scope: CheckScope, check: Check) {
        self.checks.write().push((name.to_owned(), scope, check));
    }

    /// The paths of all endpoints and checks.
    pub fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        for root in ["healthz", "livez", "readyz"] {
            paths.push(format!("/{root}"));
            for (name, scope, _) in self.checks.read().iter() {
                if asks(root, *scope) {
                    paths.push(format!("/{root}/{name}"));
                }
            }
        }
        paths
    }

    fn all_checks(&self) -> Vec<(String, CheckScope, Check)> {
        let mut checks = self.checks.read().clone();
        for part in self.supervisor.dead() {
            checks.retain(|(name, ..)| **name != *part);
            let check = || Err("it has panicked".to_owned());
            checks.push((part.to_string(), CheckScope::Always, Arc::new(check)));
        }
        checks
    }

    /// Answers a health path; `None` when it is none.
    pub fn serve(&self, path: &str, query: &Query) -> Option<Response> {
        let path = path.trim_start_matches('/');
        let (root, one) = path.split_once('/').unwrap_or((path, ""));
        if !matches!(root, "healthz" | "livez" | "readyz") {
            return None;
        }
        let checks = self.all_checks();
        let mut checks: Vec<_> = checks.iter().filter(|(_, scope, _)| asks(root, *scope)).collect();
        if !one.is_empty() {
            checks.retain(|(name, _, _)| name == one);
            let (_, _, check) = checks.first()?;
            return Some(match check() {
                Ok(()) => ok_text("ok".to_owned()),
                Err(why) => text(500, format!("internal server error: {why}\n")),
            });
        }
        let excluded: Vec<&str> =
            query.pairs().filter(|(name, _)| *name == "exclude").map(|(_, value)| value).collect();
        let mut report = String::new();
        let mut failed = Vec::new();
        for (name, _, check) in checks {
            if excluded.contains(&name.as_str()) {
                report.push_str(&format!("[+]{name} excluded: ok\n"));
                continue;
            }
            match check() {
                Ok(()) => report.push_str(&format!("[+]{name} ok\n")),
                Err(why) => {
                    tracing::warn!(check = name, why, "health check failed");
                    // What is wrong inside is for the log; the endpoint is open to everybody.
                    report.push_str(&format!("[-]{name} failed: reason withheld\n"));
                    failed.push(name.clone());
                }
            }
        }
        if !failed.is_empty() {
            return Some(text(500, format!("{report}{root} check failed\n")));
        }
        match query.first("verbose").is_some() {
            true => Some(ok_text(format!("{report}{root} check passed\n"))),
            false => Some(ok_text("ok".to_owned())),
        }
    }
}

fn asks(root: &str, scope: CheckScope) -> bool {
    match scope {
        CheckScope::Always => true,
        CheckScope::NotLive => root != "livez",
        CheckScope::ReadyOnly => root == "readyz",
    }
}

fn ok_text(body: String) -> Response {
    let mut response = text(200, body);
    response.headers_mut().insert(http::header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
