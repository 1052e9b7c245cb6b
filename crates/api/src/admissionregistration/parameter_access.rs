//! Authorizes the use of parameters: a policy or binding reveals them, so its writer must be able to read them.

use super::group::GROUP;
use crate::rules::differs;
use pintle_auth::authz::{Attributes, Verdict};
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, GroupResource, GroupVersion, UserInfo, Value, ValueExt,
    user::SYSTEM_MASTERS,
};
use pintle_registry::{BoxFuture, RequestContext};

/// Authorizes the `paramKind` of a policy, if the write sets or changes it: the user must be able to read all objects of
/// that kind. An invalid policy is not authorized: its errors are reported alone.
pub(super) fn review_param_kind<'a>(
    context: &'a RequestContext<'a>,
    policy: &'a Value,
    old: Option<&'a Value>,
    errors: &'a mut ErrorList,
) -> Option<BoxFuture<'a, ()>> {
    const PATH: &str = "spec.paramKind";
    let param_kind = policy.at(PATH)?;
    let is_checked = !context.user.is_member_of(SYSTEM_MASTERS)
        && old.is_none_or(|old| differs(policy, old, PATH))
        && errors.is_empty();
    is_checked.then(|| -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let resource = ParamResource::resolve(context, Some(param_kind));
            let attributes = Attributes {
                namespace: "*",
                name: "*",
                ..resource.attributes(context.user, "get")
            };
            let verdict = context.authorizer.authorize(&attributes).await;
            let refused = refusal(&verdict, PATH, |error| error.to_owned(), || {
                format!(
                    "user {} must have \"get\" permission on all objects of the referenced paramKind (kind={}, \
                     apiVersion={})",
                    shown(context.user),
                    param_kind.str_at("kind"),
                    param_kind.str_at("apiVersion"),
                )
            });
            errors.extend(refused);
        })
    })
}

/// Authorizes the `paramRef` of a binding, whether the write changes it or not: the user must be able to read the
/// objects. An invalid binding is not authorized: its errors are reported alone. `policies` is the resource of the policy.
pub(super) fn review_param_ref<'a>(
    context: &'a RequestContext<'a>,
    binding: &'a Value,
    policies: &'static str,
    errors: &'a mut ErrorList,
) -> Option<BoxFuture<'a, ()>> {
    const PATH: &str = "spec.paramRef";
    let reference = binding.at(PATH)?;
    let is_checked = !context.user.is_member_of(SYSTEM_MASTERS) && errors.is_empty();
    is_checked.then(|| -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let policy_name = binding.str_at("spec.policyName");
            let policies = GroupResource::new(GROUP.name(), policies);
            let policy = context.registry.get(&policies, "", policy_name).await;
            let param_kind = policy.as_ref().ok().and_then(|policy| policy.at("spec.paramKind"));
            let resource = ParamResource::resolve(context, param_kind);
            let name = reference.str_at("name");
            let verb = if name.is_empty() { "list" } else { "get" };
            let attributes = Attributes {
                namespace: reference.str_at("namespace"),
                name,
                ..resource.attributes(context.user, verb)
            };
            let verdict = context.authorizer.authorize(&attributes).await;
            let user = shown(context.user);
            let failed = |error: &str| format!("failed to authorize request: {error}");
            let refused = refusal(&verdict, PATH, failed, || {
                let why = if policy.is_err() {
                    format!("unable to get policy {policy_name}")
                } else if param_kind.is_some() && resource.resource == "*" {
                    let shown = param_kind.map(shown_kind).unwrap_or_default();
                    format!("unable to {} paramKind {shown}", if resource.version == "*" { "parse" } else { "resolve" })
                } else {
                    return format!(
                        "user {user} does not have \"{verb}\" permission on the object referenced by paramRef"
                    );
                };
                format!(
                    "{why} to determine minimum required permissions and user {user} does not have \"{verb}\" permission for \
                     all groups, versions and resources"
                )
            });
            errors.extend(refused);
        })
    })
}

/// The error of the field when the user is not allowed to read the objects.
fn refusal(
    verdict: &Verdict,
    path: &str,
    failed: impl Fn(&str) -> String,
    refused: impl Fn() -> String,
) -> Option<FieldError> {
    let detail = match verdict.error.is_empty() {
        _ if verdict.is_allowed() => return None,
        true => refused(),
        false => failed(&verdict.error),
    };
    Some(FieldError::forbidden(&FieldPath::new(path), detail))
}

/// The resource of a kind of parameters; "*" for all that is unknown.
struct ParamResource {
    group: String,
    version: String,
    resource: String,
}

impl ParamResource {
    fn resolve(context: &RequestContext<'_>, param_kind: Option<&Value>) -> ParamResource {
        let any = || "*".to_owned();
        let parsed =
            param_kind.and_then(|kind| GroupVersion::parse(kind.str_at("apiVersion")).map(|gv| (gv, kind)));
        let Some((group_version, kind)) = parsed else {
            return ParamResource { group: any(), version: any(), resource: any() };
        };
        let served = context.registry.served(&group_version.with_kind(kind.str_at("kind")));
        let resource = served.map_or_else(any, |served| served.resource.resource);
        ParamResource { group: group_version.group, version: group_version.version, resource }
    }

    fn attributes<'a>(&'a self, user: &'a UserInfo, verb: &'a str) -> Attributes<'a> {
        Attributes {
            group: &self.group,
            version: &self.version,
            resource: &self.resource,
            ..Attributes::of(user, verb)
        }
    }
}

/// The user in messages: a printed Go structure.
fn shown(user: &UserInfo) -> String {
    let extra: Vec<String> =
        user.extra.iter().map(|(key, values)| format!("{key}:[{}]", values.join(" "))).collect();
    format!("&{{{} {} [{}] map[{}]}}", user.name, user.uid, user.groups.join(" "), extra.join(" "))
}

/// A kind of parameters in messages: a printed Go structure.
fn shown_kind(kind: &Value) -> String {
    format!("&ParamKind{{APIVersion:{},Kind:{},}}", kind.str_at("apiVersion"), kind.str_at("kind"))
}
