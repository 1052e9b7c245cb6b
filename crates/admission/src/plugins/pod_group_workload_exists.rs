//! `PodGroupWorkloadExists`: refuses a pod group whose workload, or whose template in the workload, does not exist
//! (<https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/>).

use crate::{AdmissionPlugin, AdmissionRequest, Operation, Steps};
use pintle_go_forms::quote;
use pintle_machinery::{GroupResource, Status, ValueExt};
use pintle_registry::BoxFuture;

/// The plugin.
#[derive(Debug)]
pub struct PodGroupWorkloadExists {
    workloads: GroupResource,
}

impl Default for PodGroupWorkloadExists {
    fn default() -> PodGroupWorkloadExists {
        PodGroupWorkloadExists { workloads: GroupResource::new("scheduling.k8s.io", "workloads") }
    }
}

impl AdmissionPlugin for PodGroupWorkloadExists {
    fn name(&self) -> &'static str {
        "PodGroupWorkloadExists"
    }

    fn steps(&self) -> Steps {
        Steps::Validate
    }

    fn handles(&self, request: &AdmissionRequest<'_>) -> bool {
        request.operation == Operation::Create && request.is_for("scheduling.k8s.io", "podgroups")
    }

    fn validate<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let Some(reference) = request.object.at("spec.podGroupTemplateRef.workload") else {
                return Ok(());
            };
            let (name, template) =
                (reference.str_at("workloadName"), reference.str_at("podGroupTemplateName"));
            let refused = |why: String| Err(request.forbidden(format!("PodGroup rejected: {why}")));
            let found = request.find(&self.workloads, request.namespace, name).await;
            let Some(workload) = found.map_err(|status| Status::internal_error(status.message))? else {
                return refused(format!("Workload {} not found", quote(name)));
            };
            if workload.at("metadata.deletionTimestamp").is_some() {
                return refused(format!("Workload {} is being deleted", quote(name)));
            }
            let templates = workload.items_at("spec.podGroupTemplates");
            match templates.iter().any(|own| own.str_at("name") == template) {
                true => Ok(()),
                false => refused(format!(
                    "PodGroupTemplate {} not found in Workload {}",
                    quote(template),
                    quote(name)
                )),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Objects, admit};
    use pintle_machinery::json;

    #[test]
    fn the_template_must_exist() {
        let workload = |name: &str| json!({"metadata": {"name": name, "namespace": "n"}, "spec": {"podGroupTemplates": [{"name": "t"}]}});
        let mut deleted = workload("d");
        deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        let objects = Objects::new([("workloads", workload("w")), ("workloads", deleted)]);
        let create = |workload: &str, template: &str| {
            let reference = json!({"workload": {"workloadName": workload, "podGroupTemplateName": template}});
            let group = json!({"metadata": {"name": "g", "namespace": "n"}, "spec": {"podGroupTemplateRef": reference}});
            let (plugin, operation) = (PodGroupWorkloadExists::default(), Operation::Create);
            admit(&plugin, &objects, operation, "podgroups", "", group, None).map(drop)
        };
        let refused = |why: &str| {
            Err(format!("podgroups.scheduling.k8s.io \"g\" is forbidden: PodGroup rejected: {why}"))
        };
        assert_eq!(create("w", "t"), Ok(()));
        assert_eq!(create("w", "u"), refused("PodGroupTemplate \"u\" not found in Workload \"w\""));
        assert_eq!(create("x", "t"), refused("Workload \"x\" not found"));
        assert_eq!(create("d", "t"), refused("Workload \"d\" is being deleted"));
    }
}
