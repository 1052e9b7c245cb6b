//! Serves the debug endpoints of flow control: priority levels, queues and requests
//! (<https://kubernetes.io/docs/reference/debug-cluster/flow-control/>). They are not in the list of paths.

use crate::{
    base::{
        query::Query,
        request::{Request, path_of},
        response::{Response, text},
    },
    server::PlainEndpoints,
};
use pintle_flowcontrol::FlowControl;
use std::sync::Arc;

/// `/debug/api_priority_and_fairness/…`.
pub struct FlowControlEndpoints(pub Arc<FlowControl>);

const ROOT: &str = "/debug/api_priority_and_fairness/";

impl PlainEndpoints for FlowControlEndpoints {
    fn serve(&self, request: &Request) -> Option<Response> {
        let dump = match path_of(request.uri()).strip_prefix(ROOT)? {
            "dump_priority_levels" => self.0.dump_priority_levels(),
            "dump_queues" => self.0.dump_queues(),
            "dump_requests" => {
                let query = Query::parse(request.uri().query().unwrap_or_default());
                let details = query.first("includeRequestDetails").is_some_and(|value| !value.is_empty());
                self.0.dump_requests(details)
            }
            _ => return None,
        };
        Some(text(200, dump))
    }

    fn paths(&self) -> Vec<String> {
        Vec::new()
    }
}
