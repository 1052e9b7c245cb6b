//! Fuzzes the parser and the evaluation of audit policy files.

use pintle_audit::{Attributes, Policy};

/// Evaluates a policy for several requests; a policy that is parsed twice gives the same results.
pub(crate) fn audit_policy(data: &[u8]) {
    let (policy, again) = match (Policy::parse(data), Policy::parse(data)) {
        (Ok((policy, warnings)), Ok((again, same))) => {
            assert_eq!(warnings, same);
            (policy, again)
        }
        (Err(problem), Err(same)) => {
            let text = problem.to_string();
            assert!(!text.is_empty());
            assert_eq!(text, same.to_string());
            return;
        }
        _ => panic!("a policy is one or it is none"),
    };
    for (is_resource_request, resource, subresource, name) in
        [(true, "pods", "", "a"), (true, "pods", "log", ""), (true, "", "*", "*"), (false, "", "", "")]
    {
        let attributes = Attributes {
            user: None,
            verb: "get",
            is_resource_request,
            api_group: "",
            resource,
            subresource,
            namespace: "default",
            name,
            path: "/healthz/ping",
        };
        assert_eq!(policy.evaluate(&attributes), again.evaluate(&attributes));
    }
}
