//! Validates a tree, and reports all its errors at once.

use super::rule::{GroupResources, Rule, Rules};
use crate::{Level, Stage, StageSet};
use pintle_machinery::{ErrorList, FieldError, FieldPath, Value, ValueExt, validation::is_dns1123_subdomain};

/// The rules of a policy, if it is valid.
pub(super) fn validate(tree: &Value) -> Result<Rules, ErrorList> {
    let mut errors = ErrorList::new();
    let omit_stages = stages(tree, &FieldPath::new("omitStages"), &mut errors);
    let path = FieldPath::new("rules");
    let rules = tree.items_at("rules").iter().enumerate();
    let list = rules.filter_map(|(index, tree)| rule(tree, &path.index(index), &mut errors)).collect();
    let omit_managed_fields = tree.bool_at("omitManagedFields");
    match errors.is_empty() {
        true => Ok(Rules { list, omit_stages, omit_managed_fields }),
        false => Err(errors),
    }
}

fn rule(tree: &Value, path: &FieldPath, errors: &mut ErrorList) -> Option<Rule> {
    let level = level(tree.str_at("level"), &path.child("level"), errors);
    let non_resource_urls = texts(tree, "nonResourceURLs");
    let urls_path = path.child("nonResourceURLs");
    for (index, url) in non_resource_urls.iter().enumerate() {
        check_url(url, &urls_path.index(index), errors);
    }
    let resources_path = path.child("resources");
    let resources: Vec<_> = tree
        .items_at("resources")
        .iter()
        .map(|tree| {
            let resources = GroupResources {
                group: tree.str_at("group").to_owned(),
                resources: texts(tree, "resources"),
                resource_names: texts(tree, "resourceNames"),
            };
            check_resources(&resources, &resources_path, errors);
            resources
        })
        .collect();
    let omit_stages = stages(tree, &path.child("omitStages"), errors);
    let namespaces = texts(tree, "namespaces");
    if !non_resource_urls.is_empty() && (!resources.is_empty() || !namespaces.is_empty()) {
        let why = "rules cannot apply to both regular resources and non-resource URLs";
        errors.push(FieldError::invalid(&urls_path, non_resource_urls.clone(), why));
    }
    Some(Rule {
        level: level?,
        users: texts(tree, "users"),
        user_groups: texts(tree, "userGroups"),
        verbs: texts(tree, "verbs"),
        resources,
        namespaces,
        non_resource_urls,
        omit_stages,
        omit_managed_fields: tree.at("omitManagedFields").and_then(Value::as_bool),
    })
}

fn level(name: &str, path: &FieldPath, errors: &mut ErrorList) -> Option<Level> {
    let found = Level::ALL.into_iter().find(|level| level.as_str() == name);
    match (found, name) {
        (Some(_), _) => {}
        (None, "") => errors.push(FieldError::required(path, "")),
        (None, name) => errors.push(FieldError::not_supported(path, name, &Level::ALL.map(Level::as_str))),
    }
    found
}

fn check_url(url: &str, path: &FieldPath, errors: &mut ErrorList) {
    if url == "*" {
        return;
    }
    if !url.starts_with('/') {
        let why = "non-resource URL rules must begin with a '/' character";
        errors.push(FieldError::invalid(path, url, why));
    }
    if url.strip_suffix('*').unwrap_or(url).contains('*') {
        let why = "non-resource URL wildcards '*' must be the final character of the rule";
        errors.push(FieldError::invalid(path, url, why));
    }
}

/// The paths have no index, as in the reference.
fn check_resources(resources: &GroupResources, path: &FieldPath, errors: &mut ErrorList) {
    if !resources.group.is_empty() && resources.group != "*" {
        let why = is_dns1123_subdomain(&resources.group);
        if !why.is_empty() {
            errors.push(FieldError::invalid(&path.child("group"), resources.group.as_str(), why.join(",")));
        }
    }
    if !resources.resource_names.is_empty() && resources.resources.is_empty() {
        let why = "using resourceNames requires at least one resource";
        errors.push(FieldError::invalid(&path.child("resourceNames"), resources.resource_names.clone(), why));
    }
}

fn stages(tree: &Value, path: &FieldPath, errors: &mut ErrorList) -> StageSet {
    let mut stages = StageSet::default();
    for (index, name) in texts(tree, "omitStages").iter().enumerate() {
        match Stage::ALL.into_iter().find(|stage| stage.as_str() == name) {
            Some(stage) => stages.insert(stage),
            None => {
                let why = format!("allowed stages are {}", Stage::ALL.map(Stage::as_str).join(","));
                errors.push(FieldError::invalid(&path.index(index), name.as_str(), why));
            }
        }
    }
    stages
}

fn texts(tree: &Value, member: &str) -> Vec<String> {
    let items = tree.items_at(member).iter();
    items.map(|item| item.as_str().unwrap_or_default().to_owned()).collect()
}
