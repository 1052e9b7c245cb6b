//! `JobValidation`: keeps the parallelism of a job whose pods are scheduled as a gang
//! (<https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/>).

use crate::{AdmissionPlugin, AdmissionRequest, Operation, Steps};
use pintle_go_forms::quote;
use pintle_machinery::{GroupResource, Status, Value, ValueExt, meta::ObjectMeta};
use pintle_registry::BoxFuture;

/// The plugin.
#[derive(Debug)]
pub struct JobValidation {
    pod_groups: GroupResource,
}

impl Default for JobValidation {
    fn default() -> JobValidation {
        JobValidation { pod_groups: GroupResource::new("scheduling.k8s.io", "podgroups") }
    }
}

impl JobValidation {
    /// The pod group of a job whose pods are scheduled as a gang. Where pod groups are not served there is none.
    async fn gang_of(&self, job: &Value, request: &AdmissionRequest<'_>) -> Option<String> {
        let is_gang = |group: &Value| group.at("spec.schedulingPolicy.gang").is_some();
        let own = job.at("spec.template.spec.schedulingGroup.podGroupName").and_then(Value::as_str);
        if let Some(name) = own {
            let group = request.get(&self.pod_groups, request.namespace, name).await.ok()?;
            return is_gang(&group).then(|| group.name().to_owned());
        }
        let uid = job.str_at("metadata.uid");
        let is_controlled = |group: &Value| {
            let mut owners = group.items_at("metadata.ownerReferences").iter();
            owners.find(|owner| owner.bool_at("controller")).is_some_and(|owner| owner.str_at("uid") == uid)
        };
        let is_gang_of_job = |group: &Value| is_controlled(group) && is_gang(group);
        let registry = request.context.registry;
        let found = registry.list_matching(&self.pod_groups, request.namespace, 1, &is_gang_of_job).await;
        Some(found.ok()?.first()?.name().to_owned())
    }
}

impl AdmissionPlugin for JobValidation {
    fn name(&self) -> &'static str {
        "JobValidation"
    }

    fn steps(&self) -> Steps {
        Steps::Validate
    }

    fn handles(&self, request: &AdmissionRequest<'_>) -> bool {
        request.operation == Operation::Update && request.is_for("batch", "jobs")
    }

    fn validate<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let Some(old) = request.old_object else { return Ok(()) };
            if old.i64_at("spec.parallelism") == request.object.i64_at("spec.parallelism") {
                return Ok(());
            }
            match self.gang_of(old, request).await {
                Some(name) => Err(request.forbidden(format!(
                    "cannot change parallelism for a Job referencing gang-scheduled PodGroup {}",
                    quote(&name)
                ))),
                None => Ok(()),
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
    fn the_parallelism_of_a_gang_is_kept() {
        let group = |name: &str, policy: &str, owner: &str| {
            json!({"metadata": {"name": name, "namespace": "n", "ownerReferences": [{"uid": owner, "controller": true}]},
                "spec": {"schedulingPolicy": {policy: {}}}})
        };
        let groups = [group("g", "gang", "x"), group("h", "basic", "y"), group("o", "gang", "own")];
        let objects = Objects::new(groups.map(|group| ("podgroups", group)));
        let job = |uid: &str, group: Value, parallelism: i64| {
            json!({"metadata": {"name": "j", "namespace": "n", "uid": uid}, "spec": {"parallelism": parallelism,
                "template": {"spec": {"schedulingGroup": {"podGroupName": group}}}}})
        };
        let update = |uid: &str, group: Value, parallelism: i64| {
            let (old, new) = (job(uid, group.clone(), 1), job(uid, group, parallelism));
            let (plugin, operation) = (JobValidation::default(), Operation::Update);
            admit(&plugin, &objects, operation, "jobs", "", new, Some(&old)).map(drop)
        };
        let refused = |group: &str| {
            Err(format!(
                "jobs.batch \"j\" is forbidden: cannot change parallelism for a Job referencing gang-scheduled PodGroup \
                 \"{group}\""
            ))
        };
        assert_eq!(update("u", json!("g"), 2), refused("g"));
        assert_eq!(update("u", json!("g"), 1), Ok(()));
        assert_eq!(update("u", json!("h"), 2), Ok(()));
        assert_eq!(update("own", Value::Null, 2), refused("o"));
        assert_eq!(update("u", Value::Null, 2), Ok(()));
        assert_eq!(update("u", json!("gone"), 2), Ok(()));
    }
}
