//! `/healthz`, `/livez` and `/readyz`
//! (<https://kubernetes.io/docs/reference/using-api/health-checks/>).

use crate::{
    query::Query,
    response::{Response, text},
};
use http::HeaderValue;
use parking_lot::RwLock;
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

/// All checks of a server.
#[derive(Default)]
pub struct Health {
    checks: RwLock<Vec<(String, CheckScope, Check)>>,
}

impl Health {
    /// Checks with the two that every server has.
    pub fn new() -> Health {
        let health = Health::default();
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

    /// Answers a health path; `None` when it is none.
    pub fn serve(&self, path: &str, query: &Query) -> Option<Response> {
        let path = path.trim_start_matches('/');
        let (root, one) = path.split_once('/').unwrap_or((path, ""));
        if !matches!(root, "healthz" | "livez" | "readyz") {
            return None;
        }
        let checks = self.checks.read();
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
