//! `/debug/flags`: changes flags of the running server, of which the verbosity of the log is the only one.

use crate::base::{
    body::Body,
    request::{Request, path_of},
    response::{Response, with_content_type},
};
use http::{HeaderValue, Method, header};
use std::sync::Arc;

/// Sets the verbosity of the log, and tells the new one; an error is in Go's words.
pub type VerbositySetter = Arc<dyn Fn(&str) -> Result<String, String> + Send + Sync>;

/// The page of all other paths.
const INDEX: &str = "<html>\n<head>\n<title>/debug/flags/</title>\n</head>\n<body>\n/debug/flags/<br>\n<br>\nflags:<br>\n\
                     <table>\n<tr>v<br>\n</table>\n<br>\nfull flags configurable<br>\n</body>\n</html>\n";

/// Whether a path is served here.
pub(super) fn serves(path: &str) -> bool {
    path == "/debug/flags" || path.starts_with("/debug/flags/")
}

/// Answers a request for a flag.
pub(super) async fn serve(setter: &VerbositySetter, request: Request) -> Response {
    if path_of(request.uri()) != "/debug/flags/v" {
        return with_content_type(200, "text/html; charset=utf-8", Body::from(INDEX.to_owned()));
    }
    if *request.method() != Method::PUT {
        return plain(406, "unsupported http method");
    }
    let body = match request.into_body().read().await {
        Ok(body) => body,
        Err(status) => return plain(400, &format!("error reading request body: {}", status.message)),
    };
    match setter(&String::from_utf8_lossy(&body)) {
        Ok(verbosity) => plain(200, &format!("successfully set klog.logging.verbosity to {verbosity}")),
        Err(why) => plain(400, &why),
    }
}

fn plain(code: u16, text: &str) -> Response {
    let mut response = with_content_type(code, "text/plain", Body::from(format!("{text}\n")));
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
