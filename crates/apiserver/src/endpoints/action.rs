//! The action that a request asks for: a verb on a resource or on one of its subresources.

use super::{patch::PatchBody, request_scope::RequestScope};
use crate::registry::namespace_required;
use http::Method;
use pintle_machinery::{Status, StatusReason};
use pintle_registry::{Routing, SubresourceKind, Verb};

/// The action that a path and a method request.
pub(super) enum Action {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
    GetSubresource,
    UpdateSubresource,
    PatchSubresource,
    GetScale,
    UpdateScale,
    PatchScale,
    CreateNamed,
    Connect,
}

/// The 405 for a method that a path does not have.
pub fn method_not_allowed() -> Status {
    let mut status = Status::failure(
        405,
        StatusReason::MethodNotAllowed,
        "the server does not allow this method on the requested resource",
    );
    status.details = Some(Default::default());
    status
}

/// Selects the action by the verb alone: `name` may be set without need, and absent where it is required.
fn action_of_verb(scope: &RequestScope<'_>) -> Result<Action, Status> {
    let info = scope.info;
    let resource = &scope.resource.resource;
    let unsupported = || Status::method_not_supported(&resource.group_resource(), &info.verb);
    let action = match info.subresource.as_str() {
        "" => match info.verb.as_str() {
            "get" => Action::Get,
            "list" => return Ok(Action::List),
            "watch" => return Ok(Action::Watch),
            "create" => return Ok(Action::Create),
            "update" => Action::Update,
            "patch" => Action::Patch,
            "delete" => Action::Delete,
            "deletecollection" => return Ok(Action::DeleteCollection),
            _ => return Err(unsupported()),
        },
        name => {
            let subresource = resource.subresource(name);
            let missing = || Status::not_found(&resource.group_resource(), &info.name);
            match (&subresource.ok_or_else(missing)?.kind, info.verb.as_str()) {
                (SubresourceKind::Scale(_), "get") => Action::GetScale,
                (SubresourceKind::Scale(_), "update") => Action::UpdateScale,
                (SubresourceKind::Scale(_), "patch") => Action::PatchScale,
                (_, "get") => Action::GetSubresource,
                (_, "update") => Action::UpdateSubresource,
                (_, "patch") => Action::PatchSubresource,
                _ => return Err(unsupported()),
            }
        }
    };
    if info.name.is_empty() {
        // The format of a patch is checked before the name.
        if matches!(action, Action::Patch) {
            PatchBody::of(scope)?;
        }
        return Err(Status::bad_request("name must be provided"));
    }
    Ok(action)
}

/// Selects the action of a request.
///
/// # Errors
/// 404 for a path that does not exist, 405 for a method or verb that the path does not have, 400 without a name that the
/// verb needs.
pub(super) fn action(scope: &RequestScope<'_>, method: &Method) -> Result<Action, Status> {
    match scope.resource.resource.model.routing {
        Routing::Verbs => action_of_verb(scope),
        Routing::Routes => action_of_route(scope, method),
    }
}

/// Selects the action by path and method.
fn action_of_route(scope: &RequestScope<'_>, method: &Method) -> Result<Action, Status> {
    let info = scope.info;
    let resource = &scope.resource.resource;
    let in_namespace = info.is_in_namespace;
    if in_namespace && !resource.is_namespaced() {
        return Err(Status::no_such_resource());
    }
    // A path below `/watch` can only be watched: authorization has checked the verb `watch`. Other methods are refused
    // where the path exists.
    if info.verb == "watch" && *method != Method::GET {
        return Err(action_of_route(scope, &Method::GET).err().unwrap_or_else(method_not_allowed));
    }
    // Authorization has checked the verb `proxy` of the path: the method must not be served instead.
    if info.verb == "proxy" {
        return Err(Status::no_such_resource());
    }
    if info.verb == "watch" && !info.subresource.is_empty() {
        return Err(Status::no_such_resource());
    }
    let has = |verb: Verb| match resource.verbs.contains(&verb) {
        true => Ok(()),
        false => Err(method_not_allowed()),
    };
    if !info.subresource.is_empty() {
        if resource.is_namespaced() && !in_namespace {
            return Err(Status::no_such_resource());
        }
        let subresource = resource.subresource(&info.subresource).ok_or_else(Status::no_such_resource)?;
        let takes_rest = matches!(subresource.kind, SubresourceKind::Connect { is_proxy: true, .. });
        if !info.rest.is_empty() && !takes_rest {
            return Err(Status::no_such_resource());
        }
        let verb = verb_of(method);
        let action = match &subresource.kind {
            SubresourceKind::Object { verbs, .. } => match verb.filter(|verb| verbs.contains(verb)) {
                Some(Verb::Get) => Ok(Action::GetSubresource),
                Some(Verb::Update) => Ok(Action::UpdateSubresource),
                Some(Verb::Patch) => Ok(Action::PatchSubresource),
                _ => Err(method_not_allowed()),
            },
            SubresourceKind::Scale(_) => match verb {
                Some(Verb::Get) => Ok(Action::GetScale),
                Some(Verb::Update) => Ok(Action::UpdateScale),
                Some(Verb::Patch) => Ok(Action::PatchScale),
                _ => Err(method_not_allowed()),
            },
            SubresourceKind::Create { .. } => match verb {
                Some(Verb::Create) => Ok(Action::CreateNamed),
                _ => Err(method_not_allowed()),
            },
            SubresourceKind::Connect { is_proxy: true, .. }
                if matches!(*method, Method::HEAD | Method::OPTIONS) =>
            {
                Ok(Action::Connect)
            }
            SubresourceKind::Connect { verbs, .. } => match verb.filter(|verb| verbs.contains(verb)) {
                Some(_) => Ok(Action::Connect),
                None => Err(method_not_allowed()),
            },
        }?;
        if info.name.is_empty() {
            return Err(Status::bad_request("name must be provided"));
        }
        // The others ask for the object by its key.
        let is_looked_up = matches!(action, Action::CreateNamed | Action::Connect);
        if is_looked_up && resource.is_namespaced() && info.namespace.is_empty() {
            return Err(namespace_required());
        }
        return Ok(action);
    }
    // An empty segment stands before these.
    if !info.rest.is_empty() {
        return Err(Status::no_such_resource());
    }
    if info.is_named {
        if resource.is_namespaced() && !in_namespace {
            return Err(Status::no_such_resource());
        }
        let named = [Verb::Get, Verb::Update, Verb::Patch, Verb::Delete];
        if !named.iter().any(|verb| resource.verbs.contains(verb)) {
            return Err(Status::no_such_resource());
        }
        return match *method {
            Method::GET if info.verb == "watch" => has(Verb::Watch).map(|()| Action::Watch),
            Method::GET => has(Verb::Get).map(|()| Action::Get),
            Method::PUT => has(Verb::Update).map(|()| Action::Update),
            Method::PATCH => has(Verb::Patch).map(|()| Action::Patch),
            Method::DELETE => has(Verb::Delete).map(|()| Action::Delete),
            _ => Err(method_not_allowed()),
        };
    }
    let everywhere = resource.is_namespaced() && !in_namespace;
    if everywhere && !resource.verbs.contains(&Verb::List) {
        return Err(Status::no_such_resource());
    }
    match *method {
        // The route is that of the list, also of a resource without watches.
        Method::GET if info.verb == "watch" => {
            has(Verb::Watch).or_else(|_| has(Verb::List)).map(|()| Action::Watch)
        }
        Method::GET => has(Verb::List).map(|()| Action::List),
        Method::POST if !everywhere => has(Verb::Create).map(|()| Action::Create),
        Method::DELETE if !everywhere => has(Verb::DeleteCollection).map(|()| Action::DeleteCollection),
        _ => Err(method_not_allowed()),
    }
}

fn verb_of(method: &Method) -> Option<Verb> {
    match *method {
        Method::GET => Some(Verb::Get),
        Method::PUT => Some(Verb::Update),
        Method::PATCH => Some(Verb::Patch),
        Method::POST => Some(Verb::Create),
        Method::DELETE => Some(Verb::Delete),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{CONFIG_MAPS, TestServer, WIDGETS, widget};
    use pintle_machinery::json;

    #[tokio::test]
    async fn paths_and_methods_select_the_action() {
        let server = TestServer::start().await;
        server.create_config_map("a", "x").await;
        let check = async |method: &str, path: &str, code: u16| {
            assert_eq!(server.send(method, path, json!(null)).await.0, code, "{method} {path}");
        };
        check("GET", &format!("{CONFIG_MAPS}/a"), 200).await;
        check("GET", "/api/v1/configmaps", 200).await;
        check("GET", "/api/v1/nodes", 200).await;
        // The resource does not exist at such a path.
        check("GET", "/api/v1/namespaces/default/nodes", 404).await;
        check("GET", "/api/v1/configmaps/a", 404).await;
        check("GET", "/api/v1/namespaces/default/secrets", 404).await;
        check("GET", &format!("{CONFIG_MAPS}/a/scale"), 404).await;
        check("GET", &format!("{CONFIG_MAPS}/a/eviction/b"), 404).await;
        for method in ["GET", "PUT", "POST", "PATCH", "DELETE"] {
            check(method, &format!("{CONFIG_MAPS}/a//b"), 404).await;
        }
        check("GET", &format!("{CONFIG_MAPS}/a"), 200).await;
        check("GET", "/api/v1/proxy/namespaces/default/configmaps/a", 404).await;
        // The path exists for other methods.
        check("POST", "/api/v1/configmaps", 405).await;
        check("DELETE", "/api/v1/configmaps", 405).await;
        check("POST", &format!("{CONFIG_MAPS}/a"), 405).await;
        check("GET", &format!("{CONFIG_MAPS}/a/eviction"), 405).await;
        check("DELETE", "/api/v1/watch/namespaces/default/configmaps", 405).await;
        // No method has a path that cannot be watched.
        check("DELETE", "/api/v1/watch/configmaps/a", 404).await;
        check("POST", "/api/v1/watch/namespaces/default/configmaps/a/b", 404).await;
    }

    /// Such paths have the routes of a namespace, and no object has a key there.
    #[tokio::test]
    async fn an_empty_namespace_holds_no_object() {
        let server = TestServer::start().await;
        server.create_config_map("a", "x").await;
        let body = json!({"metadata": {"name": "a", "namespace": "default"}});
        let required = "Namespace parameter required.";
        for (method, path, code, message) in [
            ("POST", "configmaps", 422, "ConfigMap \"a\" is invalid: metadata.namespace: Required value"),
            ("DELETE", "configmaps", 400, required),
            ("GET", "configmaps/a", 400, required),
            ("PUT", "configmaps/a", 400, required),
            ("DELETE", "configmaps/a", 400, required),
            ("POST", "configmaps/a/eviction", 400, required),
            ("GET", "nodes", 404, "the server could not find the requested resource"),
        ] {
            let uri = format!("/api/v1/namespaces//{path}");
            let body = if matches!(method, "POST" | "PUT") { body.clone() } else { json!(null) };
            let (found, status) = server.send(method, &uri, body).await;
            assert_eq!((found, &status["message"]), (code, &json!(message)), "{method} {path}");
        }
        let (_, all) = server.send("GET", "/api/v1/namespaces//configmaps", json!(null)).await;
        assert_eq!(all["items"].as_array().unwrap().len(), 1);
        // A collection without objects has no key that could be wrong.
        let uri = "/api/v1/namespaces//configmaps?labelSelector=app%3Dy";
        assert_eq!(server.send("DELETE", uri, json!(null)).await.0, 200);
        assert_eq!(server.send("GET", &format!("{CONFIG_MAPS}/a"), json!(null)).await.0, 200);
    }

    #[tokio::test]
    async fn without_routes_the_verb_alone_selects_the_action() {
        let server = TestServer::start().await;
        assert_eq!(server.send("POST", WIDGETS, widget("a")).await.0, 201);
        let check = async |method: &str, path: &str, code: u16, message: &str| {
            let (found, status) = server.send(method, path, json!(null)).await;
            assert_eq!((found, &status["message"]), (code, &json!(message)), "{method} {path}");
        };
        check("PUT", WIDGETS, 400, "name must be provided").await;
        let unknown = "the body of the request was in an unknown format - accepted media types include: \
                       application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";
        check("PATCH", WIDGETS, 415, unknown).await;
        check("GET", &format!("{WIDGETS}/a/scale"), 404, "widgets.example.com \"a\" not found").await;
        let no_proxy = "proxy is not supported on resources of kind \"widgets.example.com\"";
        check("GET", "/apis/example.com/v1/proxy/namespaces/default/widgets/a", 405, no_proxy).await;
    }
}
