//! Assigns operations to documents: one document for each version, one for each group, and some for non-group paths.

use crate::{
    names::{definition, group_in_id, group_in_tag, meta, root},
    operation::{OBJECT_MEDIA, Operation, Paths, Payload},
    resource_paths,
};
use pintle_registry::Resource;
use std::{collections::BTreeMap, sync::Arc};

/// The operations of all documents, by the key in `/openapi/v3/<key>`.
pub(crate) fn documents(resources: &[Arc<Resource>]) -> BTreeMap<String, Paths> {
    let mut documents: BTreeMap<String, Paths> = BTreeMap::new();
    for resource in resources {
        let group_version = resource.resource.group_version();
        let root = root(&group_version);
        let paths = documents.entry(root.trim_start_matches('/').to_owned()).or_default();
        add_discovery(
            paths,
            &format!("{root}/"),
            Operation {
                id: format!(
                    "get{}{}APIResources",
                    group_in_id(&group_version.group),
                    crate::names::capitalized(&group_version.version)
                ),
                description: "list the resources of the version".to_owned(),
                tag: format!("{}_{}", group_in_tag(&group_version.group), group_version.version),
                answer: Payload::Definition(meta("APIResourceList")),
                ..plain()
            },
        );
        resource_paths::add(paths, resource);
        if !group_version.group.is_empty() {
            let key = format!("apis/{}", group_version.group);
            let path = format!("/{key}/");
            add_discovery(
                documents.entry(key).or_default(),
                &path,
                Operation {
                    id: format!("get{}APIGroup", group_in_id(&group_version.group)),
                    description: "read the group's versions".to_owned(),
                    tag: group_in_tag(&group_version.group),
                    answer: Payload::Definition(meta("APIGroup")),
                    ..plain()
                },
            );
        }
    }
    for (key, operation) in plain_documents() {
        add_discovery(documents.entry(key.to_owned()).or_default(), &format!("/{key}/"), operation);
    }
    documents
}

fn add_discovery(paths: &mut Paths, path: &str, operation: Operation) {
    paths.entry(path.to_owned()).or_default().insert("get", operation);
}

fn plain_documents() -> [(&'static str, Operation); 5] {
    [
        (
            "api",
            Operation {
                id: "getCoreAPIVersions".to_owned(),
                description: "list the versions of the core group".to_owned(),
                tag: "core".to_owned(),
                answer: Payload::Definition(meta("APIVersions")),
                ..plain()
            },
        ),
        (
            "apis",
            Operation {
                id: "getAPIVersions".to_owned(),
                description: "list the groups and their versions".to_owned(),
                tag: "apis".to_owned(),
                answer: Payload::Definition(meta("APIGroupList")),
                ..plain()
            },
        ),
        (
            "version",
            Operation {
                id: "getCodeVersion".to_owned(),
                description: "read the version of the server".to_owned(),
                tag: "version".to_owned(),
                answer: Payload::Definition(definition("k8s.io/apimachinery/pkg/version", "Info")),
                consumes: &["application/json"],
                media: &["application/json"],
                ..plain()
            },
        ),
        (
            ".well-known/openid-configuration",
            Operation {
                id: "getServiceAccountIssuerOpenIDConfiguration".to_owned(),
                description: "read where and how service account tokens are issued".to_owned(),
                tag: "WellKnown".to_owned(),
                consumes: &[],
                media: &["application/json"],
                ..plain()
            },
        ),
        (
            "openid/v1/jwks",
            Operation {
                id: "getServiceAccountIssuerOpenIDKeyset".to_owned(),
                description: "read the public keys that service account tokens are checked with".to_owned(),
                tag: "openid".to_owned(),
                consumes: &[],
                media: &["application/jwk-set+json"],
                ..plain()
            },
        ),
    ]
}

fn plain() -> Operation {
    Operation {
        id: String::new(),
        description: String::new(),
        tag: String::new(),
        action: None,
        kind: None,
        parameters: Vec::new(),
        body: None,
        codes: &[200],
        answer: Payload::Text,
        consumes: OBJECT_MEDIA,
        media: OBJECT_MEDIA,
    }
}
