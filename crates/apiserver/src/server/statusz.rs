//! `/statusz`: the version and the uptime of the server
//! (<https://kubernetes.io/docs/reference/instrumentation/zpages/>).

use super::{
    Front,
    zpage::{Contents, ZPage},
};
use crate::base::{request::Request, response::Response};
use jiff::Timestamp;
use pintle_machinery::{Value, ValueExt, json};

const PAGE: ZPage = ZPage { kind: "Statusz", name: "statusz" };

/// Answers a request.
pub(super) fn serve(front: &Front, request: &Request, version: &Value) -> Response {
    let started = i64::try_from(front.metrics.start_time()).unwrap_or_default();
    let own = [("/flagz", front.flags.is_some()), ("/healthz", true), ("/livez", true), ("/metrics", true)];
    let paths = own.into_iter().chain([("/readyz", true), ("/statusz", true), ("/version", true)]);
    let paths = paths.filter(|(_, is_served)| *is_served).map(|(path, _)| path).collect();
    PAGE.serve(request, front.pages, &Statusz { started, version, paths })
}

struct Statusz<'a> {
    /// When the server was started, in seconds since 1970.
    started: i64,
    version: &'a Value,
    /// The paths of the server itself that the document is about, in their order.
    paths: Vec<&'static str>,
}

impl Statusz<'_> {
    fn start(&self) -> Timestamp {
        Timestamp::from_second(self.started).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    fn uptime(&self) -> i64 {
        Timestamp::now().as_second().saturating_sub(self.started)
    }

    fn binary(&self) -> &str {
        self.version.str_at("gitVersion").trim_start_matches('v').split('+').next().unwrap_or_default()
    }

    fn emulation(&self) -> String {
        format!("{}.{}", self.version.str_at("emulationMajor"), self.version.str_at("emulationMinor"))
    }
}

impl Contents for Statusz<'_> {
    fn text(&self) -> String {
        let uptime = self.uptime();
        let (hours, minutes, seconds) = (uptime / 3600, uptime / 60 % 60, uptime % 60);
        format!(
            "\nStarted: {}\nUp: {hours} hr {minutes:02} min {seconds:02} sec\n\
             Go version: {}\nBinary version: {}\nEmulation version: {}\nPaths: {}\n",
            self.start().strftime("%a %b %e %H:%M:%S UTC %Y"),
            self.version.str_at("goVersion"),
            self.binary(),
            self.emulation(),
            self.paths.join(" "),
        )
    }

    fn members(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("startTime", self.start().strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into()),
            ("uptimeSeconds", self.uptime().into()),
            ("goVersion", self.version.str_at("goVersion").into()),
            ("binaryVersion", self.binary().into()),
            ("emulationVersion", self.emulation().into()),
            ("paths", json!(self.paths)),
        ]
    }
}
