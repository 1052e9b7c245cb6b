//! `AlwaysPullImages`: has every image pulled anew, so that its registry checks the credentials of each pod
//! (<https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#alwayspullimages>).

use super::pods::ContainerKind;
use crate::{AdmissionPlugin, AdmissionRequest, Operation, Steps};
use pintle_machinery::{FieldError, FieldPath, Status, Value, ValueExt, status::aggregate};
use pintle_registry::BoxFuture;
use std::{collections::HashSet, future::ready};

const ALWAYS: &str = "Always";

/// The plugin.
#[derive(Debug, Clone, Copy)]
pub struct AlwaysPullImages;

impl AdmissionPlugin for AlwaysPullImages {
    fn name(&self) -> &'static str {
        "AlwaysPullImages"
    }

    fn steps(&self) -> Steps {
        Steps::Both
    }

    fn handles(&self, request: &AdmissionRequest<'_>) -> bool {
        matches!(request.operation, Operation::Create | Operation::Update) && request.is_for("", "pods")
    }

    fn admit<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        if has_new_images(request) {
            let pod = request.object.to_mut();
            for kind in ContainerKind::ALL {
                for container in pod.items_at_mut(kind.path()) {
                    container.set("imagePullPolicy", ALWAYS);
                }
            }
            for volume in pod.items_at_mut("spec.volumes") {
                if volume.field("image").is_some() {
                    volume.set("image.pullPolicy", ALWAYS);
                }
            }
        }
        Box::pin(ready(Ok(())))
    }

    fn validate<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        let others = if has_new_images(request) { other_policies(&request.object) } else { Vec::new() };
        let refused = others.iter().map(|error| request.forbidden(error.to_string()).message);
        Box::pin(ready(match others.is_empty() {
            true => Ok(()),
            false => Err(Status::unknown(aggregate(refused))),
        }))
    }
}

fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    ContainerKind::ALL.into_iter().flat_map(|kind| pod.items_at(kind.path()))
}

/// Whether the pod has an image that it did not have before.
fn has_new_images(request: &AdmissionRequest<'_>) -> bool {
    let Some(old) = request.old_object else { return true };
    let before: HashSet<&str> = containers(old).map(|container| container.str_at("image")).collect();
    containers(&request.object).any(|container| !before.contains(container.str_at("image")))
}

fn other_policies(pod: &Value) -> Vec<FieldError> {
    let spec = FieldPath::new("spec");
    let check = |path: FieldPath, policy: &str| {
        (policy != ALWAYS).then(|| FieldError::not_supported(&path, policy, &[ALWAYS]))
    };
    let of_containers = ContainerKind::ALL.into_iter().flat_map(|kind| {
        let list = spec.child(kind.path().trim_start_matches("spec."));
        let policies = pod.items_at(kind.path()).iter().enumerate();
        policies.filter_map(move |(index, container)| {
            check(list.index(index).child("imagePullPolicy"), container.str_at("imagePullPolicy"))
        })
    });
    let volumes = pod.items_at("spec.volumes").iter().enumerate();
    let of_volumes =
        volumes.filter(|(_, volume)| volume.field("image").is_some()).filter_map(|(index, volume)| {
            let path = spec.child("volumes").index(index).child("image").child("pullPolicy");
            check(path, volume.str_at("image.pullPolicy"))
        });
    of_containers.chain(of_volumes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Objects, admit};
    use pintle_machinery::json;

    fn pod(image: &str, policy: &str) -> Value {
        json!({"metadata": {"name": "p"}, "spec": {
            "containers": [{"image": image, "imagePullPolicy": policy}],
            "volumes": [{"name": "v", "image": {"pullPolicy": policy}}, {"name": "e", "emptyDir": {}}],
        }})
    }

    #[test]
    fn new_images_are_always_pulled() {
        let call = |operation, pod, old: Option<&Value>| {
            admit(&AlwaysPullImages, &Objects::default(), operation, "pods", "", pod, old)
        };
        let (never, always) = (pod("i", "Never"), pod("i", ALWAYS));
        assert_eq!(call(Operation::Create, never.clone(), None), Ok(always.clone()));
        assert_eq!(call(Operation::Update, never.clone(), Some(&never)), Ok(never.clone()));
        assert_eq!(call(Operation::Update, never.clone(), Some(&pod("j", ALWAYS))), Ok(always));
    }

    #[test]
    fn other_policies_are_named() {
        let errors: Vec<String> =
            other_policies(&pod("i", "Never")).iter().map(FieldError::to_string).collect();
        assert_eq!(
            errors,
            [
                "spec.containers[0].imagePullPolicy: Unsupported value: \"Never\": supported values: \"Always\"",
                "spec.volumes[0].image.pullPolicy: Unsupported value: \"Never\": supported values: \"Always\"",
            ]
        );
    }
}
