//! `/debug/pprof`: profiles of the process, as Go's programs serve them (<https://pkg.go.dev/net/http/pprof>).
//!
//! There are profiles of CPU time and of the memory in use. Those of goroutines, of waiting and of execution belong to Go's
//! runtime; they are unknown here. A profile takes a bounded time, and one of each kind is taken at once.

use crate::base::{
    body::Body,
    request::{Request, path_of},
    response::{Response, empty, with_content_type},
};
use http::{HeaderName, HeaderValue, Method, StatusCode, header};
use pintle_profiling::{Symbols, cpu, heap};
use std::{fmt::Write as _, sync::Arc, time::Duration};
use tokio::sync::Semaphore;

/// The time of a CPU profile that names none, in seconds.
const DEFAULT_SECONDS: i64 = 30;
/// The most seconds of a CPU profile.
const MAX_SECONDS: i64 = 300;
/// The most addresses that one request has named.
const MAX_ADDRESSES: usize = 100_000;

/// The profiles of the process. Clones share the limits.
#[derive(Clone)]
pub struct Profiles {
    /// Reading the symbols takes memory: one request does so at a time, the others wait.
    reading: Arc<Semaphore>,
    has_command_line: bool,
}

impl Profiles {
    /// The profiles, without the command line: it may have secrets.
    pub fn new() -> Profiles {
        Profiles { reading: Arc::new(Semaphore::new(1)), has_command_line: false }
    }

    /// The same, with the command line.
    #[must_use]
    pub fn with_command_line(self) -> Profiles {
        Profiles { has_command_line: true, ..self }
    }

    /// Answers a request; `Err` gives it back if its path belongs to others.
    pub(crate) async fn serve(&self, request: Request) -> Result<Response, Request> {
        let name = match path_of(request.uri()).strip_prefix("/debug/pprof") {
            Some("") => return Ok(redirect(request.method())),
            Some(rest) if rest.starts_with('/') => rest.get(1..).unwrap_or_default().to_owned(),
            _ => return Err(request),
        };
        let mut response = match name.as_str() {
            "" => with_content_type(200, "text/html; charset=utf-8", Body::from(self.index())),
            "profile" => self.cpu(&request).await,
            "heap" => self.heap(&request).await,
            "symbol" => self.symbol(request).await,
            "cmdline" if self.has_command_line => command_line(),
            _ => failure(404, "Unknown profile"),
        };
        response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        Ok(response)
    }

    async fn cpu(&self, request: &Request) -> Response {
        let seconds = parameter(request, "seconds").and_then(|text| text.parse().ok());
        let seconds: i64 = seconds.filter(|seconds| *seconds > 0).unwrap_or(DEFAULT_SECONDS);
        if seconds > MAX_SECONDS {
            return failure(400, &format!("a profile takes at most {MAX_SECONDS} seconds"));
        }
        let profile = match cpu::start() {
            Ok(profile) => profile,
            Err(error) => return failure(500, &format!("Could not enable CPU profiling: {error}")),
        };
        // A client that leaves drops the profile, which ends it.
        tokio::time::sleep(Duration::from_secs(seconds.unsigned_abs())).await;
        self.encode("profile", move || profile.finish()).await
    }

    async fn heap(&self, request: &Request) -> Response {
        if parameter(request, "seconds").is_some() {
            return failure(400, "\"seconds\" parameter is not supported for this profile type");
        }
        if parameter(request, "debug").is_some_and(|text| text.parse().unwrap_or(0) != 0) {
            return failure(400, "\"debug\" parameter is not supported: use go tool pprof -raw");
        }
        if !heap::is_enabled() {
            return failure(500, "Could not profile the memory: it is not sampled");
        }
        self.encode("heap", heap::profile).await
    }

    /// Sends the bytes that `encode` makes beside the workers.
    async fn encode(&self, name: &str, encode: impl FnOnce() -> Vec<u8> + Send + 'static) -> Response {
        let _reading = self.reading.acquire().await;
        let Ok(bytes) = tokio::task::spawn_blocking(encode).await else {
            return failure(500, "failed to collect profile");
        };
        let mut response =
            with_content_type(200, "application/octet-stream", Body::from(bytes::Bytes::from(bytes)));
        if let Ok(value) = HeaderValue::from_str(&format!("attachment; filename=\"{name}\"")) {
            response.headers_mut().insert(header::CONTENT_DISPOSITION, value);
        }
        response
    }

    /// The names of the addresses in the body of a POST, or in the query.
    async fn symbol(&self, request: Request) -> Response {
        let query = request.uri().query().unwrap_or_default().to_owned();
        let text = match *request.method() {
            Method::POST => match request.into_body().read().await {
                Ok(body) => String::from_utf8_lossy(&body).into_owned(),
                Err(status) => return failure(status.code, &status.message),
            },
            _ => query,
        };
        let _reading = self.reading.acquire().await;
        let names = tokio::task::spawn_blocking(move || {
            let symbols = Symbols::of_this_process();
            let mut names = "num_symbols: 1\n".to_owned();
            for word in text.split('+').take(MAX_ADDRESSES) {
                let address = match word.strip_prefix("0x") {
                    Some(digits) => usize::from_str_radix(digits, 16),
                    None => word.parse(),
                };
                if let Ok(address) = address
                    && let Some(name) = symbols.name(address)
                {
                    let _ = writeln!(names, "{address:#x} {name}");
                }
            }
            names
        });
        match names.await {
            Ok(names) => with_content_type(200, "text/plain; charset=utf-8", Body::from(names)),
            Err(_) => failure(500, "failed to read the symbols"),
        }
    }

    fn index(&self) -> String {
        let command_line =
            ("cmdline", 0, "The command line of the process, with NUL bytes between the arguments.");
        let mut profiles = vec![
            ("heap", heap::samples(), "A sampling of the memory in use."),
            (
                "profile",
                0,
                "CPU time. The parameter seconds is how long it is sampled, 30 by default. Read it with go tool pprof.",
            ),
            (
                "symbol",
                0,
                "The names of functions, by their addresses in the query or in the body of a POST.",
            ),
        ];
        if self.has_command_line {
            profiles.insert(0, command_line);
        }
        let mut page = "<html>\n<head>\n<title>/debug/pprof/</title>\n</head>\n<body>\n/debug/pprof/\n<br>\n\
                        Types of profiles available:\n<table>\n<thead><td>Count</td><td>Profile</td></thead>\n"
            .to_owned();
        for (name, count, _) in &profiles {
            let _ = writeln!(page, "<tr><td>{count}</td><td><a href='{name}'>{name}</a></td></tr>");
        }
        page.push_str("</table>\n<p>\nProfile Descriptions:\n<ul>\n");
        for (name, _, description) in &profiles {
            let _ = writeln!(page, "<li>{name}: {description}</li>");
        }
        page.push_str("</ul>\n</p>\n</body>\n</html>");
        page
    }
}

impl Default for Profiles {
    fn default() -> Profiles {
        Profiles::new()
    }
}

fn parameter(request: &Request, name: &str) -> Option<String> {
    let query = request.uri().query().unwrap_or_default();
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.filter(|(known, _)| *known == name).map(|(_, value)| value.to_owned()).next()
}

/// The redirect to the index; the link is for those who read it.
fn redirect(method: &Method) -> Response {
    let page = "<a href=\"/debug/pprof/\">Found</a>.\n\n".to_owned();
    let mut response = match *method {
        Method::GET | Method::HEAD => with_content_type(302, "text/html; charset=utf-8", Body::from(page)),
        _ => empty(302),
    };
    response.headers_mut().insert(header::LOCATION, HeaderValue::from_static("/debug/pprof/"));
    response
}

fn command_line() -> Response {
    let arguments: Vec<String> =
        std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect();
    with_content_type(200, "text/plain; charset=utf-8", Body::from(arguments.join("\0")))
}

fn failure(code: u16, message: &str) -> Response {
    let mut response =
        with_content_type(code, "text/plain; charset=utf-8", Body::from(format!("{message}\n")));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(HeaderName::from_static("x-go-pprof"), HeaderValue::from_static("1"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::body::RequestBody;
    use bytes::Bytes;
    use http_body_util::BodyExt;

    async fn get(profiles: &Profiles, path: &str) -> (u16, Bytes) {
        let request = http::Request::get(path).body(RequestBody::Bytes(Bytes::new())).unwrap();
        let Ok(response) = profiles.serve(request).await else { panic!("{path} is not served") };
        let code = response.status().as_u16();
        (code, response.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default())
    }

    #[tokio::test]
    async fn profiles_are_served_under_their_names() {
        let profiles = Profiles::new();
        for (path, code, part) in [
            ("/debug/pprof", 302, "<a href=\"/debug/pprof/\">Found</a>.\n\n"),
            ("/debug/pprof/", 200, "<a href='profile'>"),
            ("/debug/pprof/nothing", 404, "Unknown profile\n"),
            ("/debug/pprof/cmdline", 404, "Unknown profile\n"),
            ("/debug/pprof/profile?seconds=301", 400, "at most 300 seconds"),
            ("/debug/pprof/heap?seconds=1", 400, "not supported"),
            ("/debug/pprof/symbol?0x1+x", 200, "num_symbols: 1\n"),
        ] {
            let (found, body) = get(&profiles, path).await;
            let body = String::from_utf8(body.to_vec()).unwrap();
            assert!(found == code && body.contains(part), "{path}: {found} {body}");
        }
        let request = http::Request::post("/debug/pprof").body(RequestBody::Bytes(Bytes::new())).unwrap();
        let Ok(response) = profiles.serve(request).await else { panic!("the redirect is served") };
        assert_eq!((response.status().as_u16(), response.headers().get(header::CONTENT_TYPE)), (302, None));
        assert_eq!(response.headers()[header::CACHE_CONTROL], "no-cache, private");
        let profiles = profiles.with_command_line();
        assert_eq!(get(&profiles, "/debug/pprof/cmdline").await.0, 200);
        let address = symbol_of_this_test as fn() as usize;
        let (_, names) = get(&profiles, &format!("/debug/pprof/symbol?{address:#x}")).await;
        assert!(String::from_utf8_lossy(&names).contains("symbol_of_this_test"));
        let other = http::Request::get("/debug/pprofx").body(RequestBody::Bytes(Bytes::new())).unwrap();
        assert!(profiles.serve(other).await.is_err());
    }

    fn symbol_of_this_test() {
        std::hint::black_box(());
    }

    #[tokio::test]
    async fn one_cpu_profile_is_taken_at_once() {
        let profiles = Profiles::new();
        let both = tokio::join!(
            get(&profiles, "/debug/pprof/profile?seconds=1"),
            get(&profiles, "/debug/pprof/profile?seconds=1")
        );
        assert_eq!((both.0.0, both.1.0), (200, 500));
        assert!(both.0.1.starts_with(&[0x1f, 0x8b]));
    }
}
