//! Authorization checks: <https://kubernetes.io/docs/reference/using-api/cel/#kubernetes-authorizer-library>.

use super::{Function, no_such_overload};
use crate::EvaluationError;
use crate::authorizer::{
    Authorization, AuthorizationCheck, AuthorizationDecision, CheckTarget, Part, ResourceCheck,
};
use crate::value::{Opaque, Text, Value};
use pintle_machinery::validation::{name_is_dns_label, name_is_dns_subdomain};
use std::sync::Arc;

pub(super) fn lookup(name: &str) -> Option<Function> {
    Some(match name {
        "path" => |args| match operands(args) {
            Some((of @ Authorization { part: Part::Authorizer, .. }, path)) => {
                let path = not_blank(path, "path must not be empty")?;
                Ok(of.with(Part::Path(path)).into())
            }
            _ => Err(no_such_overload("path", args)),
        },
        "group" => |args| match operands(args) {
            Some((of @ Authorization { part: Part::Authorizer, .. }, group)) => {
                Ok(of.with(Part::Group(group.into())).into())
            }
            _ => Err(no_such_overload("group", args)),
        },
        "serviceAccount" => service_account,
        "resource" => |args| match operands(args) {
            Some((of @ Authorization { part: Part::Group(group), .. }, resource)) => {
                let resource = not_blank(resource, "resource must not be empty")?;
                let check = ResourceCheck { group: group.clone(), resource, ..ResourceCheck::default() };
                Ok(of.with(Part::Resource(check)).into())
            }
            _ => Err(no_such_overload("resource", args)),
        },
        "subresource" => |args| narrow("subresource", args, |check, text| check.subresource = text),
        "namespace" => |args| narrow("namespace", args, |check, text| check.namespace = text),
        "name" => |args| narrow("name", args, |check, text| check.name = text),
        "fieldSelector" => |args| narrow("fieldSelector", args, |check, text| check.field_selector = text),
        "labelSelector" => |args| narrow("labelSelector", args, |check, text| check.label_selector = text),
        "check" => check,
        "allowed" => |args| match decision(args) {
            Some(decision) => Ok(Value::Bool(decision.allowed)),
            None => Err(no_such_overload("allowed", args)),
        },
        "errored" => |args| match decision(args) {
            Some(decision) => Ok(Value::Bool(decision.error.is_some())),
            None => Err(no_such_overload("errored", args)),
        },
        "reason" => |args| match decision(args) {
            Some(decision) => Ok(Value::String(Text::from(decision.reason.to_string()))),
            None => Err(no_such_overload("reason", args)),
        },
        "error" => |args| match decision(args) {
            Some(decision) => {
                let error = decision.error.as_deref().unwrap_or_default();
                Ok(Value::String(Text::from(error.to_owned())))
            }
            None => Err(no_such_overload("error", args)),
        },
        _ => return None,
    })
}

/// The target and the text of a method.
fn operands<'v>(args: &'v [Value<'_>]) -> Option<(&'v Authorization, &'v str)> {
    match args {
        [Value::Opaque(of), Value::String(text)] => match &**of {
            Opaque::Authorization(of) => Some((of, text)),
            _ => None,
        },
        _ => None,
    }
}

fn decision<'v>(args: &'v [Value<'_>]) -> Option<&'v AuthorizationDecision> {
    match args {
        [Value::Opaque(of)] => match &**of {
            Opaque::Decision(decision) => Some(decision),
            _ => None,
        },
        _ => None,
    }
}

fn not_blank(text: &str, otherwise: &'static str) -> Result<Arc<str>, EvaluationError> {
    if text.trim().is_empty() { Err(otherwise.into()) } else { Ok(text.into()) }
}

fn narrow<'a>(
    function: &str,
    args: &[Value<'a>],
    set: impl FnOnce(&mut ResourceCheck, Arc<str>),
) -> Result<Value<'a>, EvaluationError> {
    match operands(args) {
        Some((of @ Authorization { part: Part::Resource(check), .. }, text)) => {
            let mut check = check.clone();
            set(&mut check, text.into());
            Ok(of.with(Part::Resource(check)).into())
        }
        _ => Err(no_such_overload(function, args)),
    }
}

fn service_account<'a>(args: &mut [Value<'a>]) -> Result<Value<'a>, EvaluationError> {
    let [Value::Opaque(of), Value::String(namespace), Value::String(name)] = &*args else {
        return Err(no_such_overload("serviceAccount", args));
    };
    let Opaque::Authorization(of @ Authorization { part: Part::Authorizer, .. }) = &**of else {
        return Err(no_such_overload("serviceAccount", args));
    };
    if !name_is_dns_subdomain(name, false).is_empty() {
        return Err("Invalid service account name".into());
    }
    if !name_is_dns_label(namespace, false).is_empty() {
        return Err("Invalid service account namespace".into());
    }
    let account = (Arc::from(namespace.as_str()), Arc::from(name.as_str()));
    let of = Authorization { service_account: Some(account), ..of.clone() };
    Ok(of.with(Part::Authorizer).into())
}

fn check<'a>(args: &mut [Value<'a>]) -> Result<Value<'a>, EvaluationError> {
    let Some((of, verb)) = operands(args) else { return Err(no_such_overload("check", args)) };
    let target = match &of.part {
        Part::Path(path) => CheckTarget::Path(path.clone()),
        Part::Resource(check) => CheckTarget::Resource(check.clone()),
        Part::Authorizer | Part::Group(_) => return Err(no_such_overload("check", args)),
    };
    let check = AuthorizationCheck { service_account: of.service_account.clone(), verb: verb.into(), target };
    match of.authority.check(&check) {
        Some(decision) => Ok(Value::Opaque(Arc::new(Opaque::Decision(decision)))),
        None => Err(EvaluationError::Undecided),
    }
}
