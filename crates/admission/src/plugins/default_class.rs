//! `DefaultStorageClass` and `DefaultIngressClass`: set the default class on objects without a class
//! (<https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#defaultstorageclass>).

use crate::{AdmissionPlugin, AdmissionRequest, Operation, Steps};
use pintle_machinery::{GroupResource, Status, Value, ValueExt, meta::ObjectMeta};
use pintle_registry::BoxFuture;
use std::cmp::Reverse;

/// One of the two plugins.
#[derive(Debug)]
pub struct DefaultClass {
    name: &'static str,
    /// The resource whose objects have a class.
    of: (&'static str, &'static str),
    classes: GroupResource,
    /// The path of the class name.
    path: &'static str,
    /// The legacy annotation with the class name.
    older_annotation: &'static str,
    /// The annotations that mark the default class.
    marks: &'static [&'static str],
}

impl DefaultClass {
    /// The plugin for persistent volume claims.
    pub fn storage() -> DefaultClass {
        DefaultClass {
            name: "DefaultStorageClass",
            of: ("", "persistentvolumeclaims"),
            classes: GroupResource::new("storage.k8s.io", "storageclasses"),
            path: "spec.storageClassName",
            older_annotation: "volume.beta.kubernetes.io/storage-class",
            marks: &[
                "storageclass.kubernetes.io/is-default-class",
                "storageclass.beta.kubernetes.io/is-default-class",
            ],
        }
    }

    /// The plugin for ingresses.
    pub fn ingress() -> DefaultClass {
        DefaultClass {
            name: "DefaultIngressClass",
            of: ("networking.k8s.io", "ingresses"),
            classes: GroupResource::new("networking.k8s.io", "ingressclasses"),
            path: "spec.ingressClassName",
            older_annotation: "kubernetes.io/ingress.class",
            marks: &["ingressclass.kubernetes.io/is-default-class"],
        }
    }

    fn is_default(&self, class: &Value) -> bool {
        self.marks.iter().any(|mark| class.annotation(mark) == Some("true"))
    }
}

impl AdmissionPlugin for DefaultClass {
    fn name(&self) -> &'static str {
        self.name
    }

    fn steps(&self) -> Steps {
        Steps::Admit
    }

    fn handles(&self, request: &AdmissionRequest<'_>) -> bool {
        request.operation == Operation::Create && request.is_for(self.of.0, self.of.1)
    }

    fn admit<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let object = &request.object;
            if object.at(self.path).is_some() || object.annotation(self.older_annotation).is_some() {
                return Ok(());
            }
            let classes = match request.list(&self.classes, "").await {
                Ok(classes) => classes,
                Err(status) => return Err(request.forbidden(status.to_string())),
            };
            let defaults = classes.iter().filter(|class| self.is_default(class));
            // Of several default classes the newest counts, so that a new default takes effect before the old one is
            // unmarked.
            let newest = defaults
                .min_by_key(|class| (Reverse(class.str_at("metadata.creationTimestamp")), class.name()));
            if let Some(class) = newest {
                request.object.to_mut().set(self.path, class.name());
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Objects, admit};
    use pintle_machinery::json;

    #[test]
    fn the_newest_default_class_is_taken() {
        let class = |name: &str, created: &str, is_default: &str| {
            let mark = json!({"storageclass.kubernetes.io/is-default-class": is_default});
            let metadata = json!({"name": name, "creationTimestamp": created, "annotations": mark});
            ("storageclasses", json!({"metadata": metadata}))
        };
        let check = |classes: Vec<(&'static str, Value)>, claim: Value, expected: Value| {
            let plugin = DefaultClass::storage();
            let objects = Objects::new(classes);
            let claim =
                admit(&plugin, &objects, Operation::Create, "persistentvolumeclaims", "", claim, None)
                    .unwrap();
            assert_eq!(claim["spec"]["storageClassName"], expected);
        };
        let claim = json!({"metadata": {"name": "c"}, "spec": {}});
        let one = class("one", "2026-01-01T00:00:00Z", "true");
        let two = class("two", "2026-01-02T00:00:00Z", "true");
        let three = class("three", "2026-01-03T00:00:00Z", "false");
        check(vec![], claim.clone(), Value::Null);
        check(vec![one.clone(), two, three], claim, json!("two"));
        check(vec![one.clone()], json!({"spec": {"storageClassName": ""}}), json!(""));
        let older = json!({"metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "x"}}, "spec": {}});
        check(vec![one], older, Value::Null);
    }
}
