//! The configuration of `ResourceQuota`: resources that objects may only consume where a quota covers them
//! (<https://kubernetes.io/docs/concepts/policy/resource-quotas/#limit-priority-class-consumption-by-default>).

use super::evaluator::Evaluator;
use crate::{AdmissionRequest, PluginError, plugins::quantities::Quantities};
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Status, Text, Value, ValueExt,
    config_file::{ConfigFile, ConfigKind, ConfigTypes},
    status::aggregate,
};
use std::{
    collections::{BTreeSet, HashSet},
    sync::LazyLock,
};

const KIND: ConfigKind =
    ConfigKind { kind: "ResourceQuotaConfiguration", group: "apiserver.config.k8s.io", versions: &["v1"] };
/// The same configuration in its old group.
const OLD_KIND: ConfigKind = ConfigKind {
    kind: "Configuration",
    group: "resourcequota.admission.k8s.io",
    versions: &["v1beta1", "v1alpha1"],
};
const SCHEME: &str = "pkg/admission/plugin/resourcequota/config.go:31";

static FILES: LazyLock<[ConfigFile; 2]> =
    LazyLock::new(|| [OLD_KIND, KIND].map(|kind| ConfigFile::new(kind, fields).of_scheme(SCHEME)));

fn fields(types: &mut ConfigTypes) -> pintle_schema::NodeId {
    let (text, texts) = (types.text(), types.texts());
    let scope = types.structure(&[("scopeName", text), ("operator", text), ("values", texts)], &[]);
    let scopes = types.list(scope);
    let fields = [("apiGroup", text), ("resource", text), ("matchContains", texts), ("matchScopes", scopes)];
    let limited = types.structure(&fields, &[]);
    let limited = types.list(limited);
    types.root(&[("limitedResources", limited)], &[])
}

/// The limited resources.
#[derive(Debug, Default)]
pub(super) struct LimitedResources(Vec<LimitedResource>);

#[derive(Debug)]
struct LimitedResource {
    group: String,
    resource: String,
    /// Parts of the names of limited amounts.
    names: Vec<String>,
    scopes: Vec<Scope>,
}

#[derive(Debug)]
struct Scope {
    name: String,
    operator: String,
    values: Vec<Value>,
}

/// The limits that an object needs a covering quota for.
#[derive(Default)]
pub(super) struct Limits<'a> {
    /// The limited amounts that no quota covers yet.
    names: BTreeSet<&'a str>,
    /// The limited scopes that no quota covers yet.
    scopes: Vec<&'a Scope>,
}

impl LimitedResources {
    /// Reads the configuration.
    pub(super) fn read(text: Option<&[u8]>) -> Result<LimitedResources, PluginError> {
        let Some(text) = text else { return Ok(LimitedResources::default()) };
        let [old, present] = &*FILES;
        let tree = old.decode_strict_or(present, text).map_err(PluginError::configuration)?;
        let path = FieldPath::new("limitedResources");
        let (mut limited, mut errors) = (Vec::new(), ErrorList::new());
        for (index, item) in tree.items_at("limitedResources").iter().enumerate() {
            if item.str_at("resource").is_empty() {
                errors.push(FieldError::required(&path.index(index).child("resource"), ""));
            }
            limited.push(LimitedResource::of(item));
        }
        match errors.is_empty() {
            true => Ok(LimitedResources(limited)),
            false => Err(PluginError::Configuration(aggregate(errors.iter().map(ToString::to_string)))),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The limits for the object of a request with this usage. Scopes are those of all resources, as in kube-apiserver.
    pub(super) fn of<'a>(
        &'a self,
        request: &AdmissionRequest<'_>,
        evaluator: &Evaluator,
        usage: &'a Quantities,
    ) -> Limits<'a> {
        let own = self.0.iter().filter(|limited| request.is_of(&limited.group, &limited.resource));
        let parts: Vec<&String> = own.flat_map(|limited| &limited.names).collect();
        let names = usage.iter().filter(|(_, amount)| amount.sign() > 0).map(|(name, _)| name);
        let names = names.filter(|name| parts.iter().any(|part| name.contains(part.as_str())));
        let scopes = self.0.iter().flat_map(|limited| &limited.scopes).filter(|scope| {
            evaluator.is_in_scope(&scope.name, &scope.operator, &scope.values, &request.object)
        });
        Limits { names: names.map(String::as_str).collect(), scopes: scopes.collect() }
    }
}

impl LimitedResource {
    fn of(item: &Value) -> LimitedResource {
        let scope = |scope: &Value| Scope {
            name: scope.str_at("scopeName").to_owned(),
            operator: scope.str_at("operator").to_owned(),
            values: scope.items_at("values").to_vec(),
        };
        let names = item.items_at("matchContains").iter().filter_map(Value::as_str);
        LimitedResource {
            group: item.str_at("apiGroup").to_owned(),
            resource: item.str_at("resource").to_owned(),
            names: names.map(str::to_owned).collect(),
            scopes: item.items_at("matchScopes").iter().map(scope).collect(),
        }
    }
}

impl Limits<'_> {
    /// Notes a quota that counts the object: it covers the amounts that it limits.
    pub(super) fn cover_names<'a>(&mut self, restricted: impl Iterator<Item = &'a Text>) {
        if !self.names.is_empty() {
            restricted.for_each(|name| {
                self.names.remove(name.as_str());
            });
        }
    }

    /// Notes a quota of the namespace: it covers those of its scopes that the object is in.
    pub(super) fn cover_scopes(&mut self, quota: &Value, evaluator: &Evaluator, object: &Value) {
        if self.scopes.is_empty() {
            return;
        }
        let plain = quota.items_at("spec.scopes").iter().filter_map(Value::as_str);
        let plain = plain.filter(|scope| evaluator.is_in_scope(scope, "Exists", &[], object));
        let selected =
            quota.items_at("spec.scopeSelector.matchExpressions").iter().filter_map(|expression| {
                let (scope, operator) = (expression.str_at("scopeName"), expression.str_at("operator"));
                evaluator.is_in_scope(scope, operator, expression.items_at("values"), object).then_some(scope)
            });
        let covered: HashSet<&str> = plain.chain(selected).collect();
        self.scopes.retain(|scope| !covered.contains(scope.name.as_str()));
    }

    /// Refuses what no quota covers.
    pub(super) fn check(&self, request: &AdmissionRequest<'_>) -> Result<(), Status> {
        if !self.names.is_empty() {
            let names: Vec<&str> = self.names.iter().copied().collect();
            return Err(request.forbidden(format!("insufficient quota to consume: {}", names.join(","))));
        }
        if self.scopes.is_empty() {
            return Ok(());
        }
        let scopes = self.scopes.iter().map(|scope| {
            let values: Vec<&str> = scope.values.iter().filter_map(Value::as_str).collect();
            format!("{{{} {} [{}]}}", scope.name, scope.operator, values.join(" "))
        });
        let scopes: Vec<String> = scopes.collect();
        Err(Status::unknown(format!("insufficient quota to match these scopes: [{}]", scopes.join(" "))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configurations_have_a_resource_in_each_limit() {
        let error = |text: &str| LimitedResources::read(Some(text.as_bytes())).unwrap_err();
        let head = "apiVersion: apiserver.config.k8s.io/v1\nkind: ResourceQuotaConfiguration\n";
        assert_eq!(
            error(&format!("{head}limitedResources: [{{}}]")),
            PluginError::configuration("limitedResources[0].resource: Required value")
        );
        assert_eq!(
            error(&format!("{head}limited: []")),
            PluginError::configuration("strict decoding error: unknown field \"limited\"")
        );
        let old = "apiVersion: resourcequota.admission.k8s.io/v1beta1\nkind: Configuration\n";
        assert!(
            LimitedResources::read(Some(format!("{old}limitedResources: [{{resource: pods}}]").as_bytes()))
                .is_ok()
        );
        assert_eq!(
            error(&format!("{old}limited: []")),
            PluginError::configuration("strict decoding error: unknown field \"limited\"")
        );
        assert_eq!(
            error("apiVersion: v1\nkind: X"),
            PluginError::configuration(format!(
                "no kind \"X\" is registered for version \"v1\" in scheme \"{SCHEME}\""
            ))
        );
        assert!(LimitedResources::read(None).unwrap().is_empty());
    }
}
