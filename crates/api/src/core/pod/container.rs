//! Chooses the container of a log or a stream.

use pintle_machinery::{Status, Value, ValueExt};

/// The lists of containers, in the order in which messages name them.
const LISTS: [&str; 3] = ["spec.initContainers", "spec.containers", "spec.ephemeralContainers"];

/// The container of this name, or without a name the only one of the pod.
///
/// # Errors
/// 400 when the pod has no such container, or several to choose from.
pub(super) fn choose<'a>(pod: &'a Value, container: &'a str) -> Result<&'a str, Status> {
    let name = pod.str_at("metadata.name");
    let mut names = LISTS.iter().flat_map(|list| pod.items_at(list)).map(|item| item.str_at("name"));
    if !container.is_empty() {
        return match names.any(|own| own == container) {
            true => Ok(container),
            false => Err(Status::bad_request(format!("container {container} is not valid for pod {name}"))),
        };
    }
    match pod.items_at("spec.containers") {
        [only] => Ok(only.str_at("name")),
        [] => Err(Status::bad_request(format!("a container name must be specified for pod {name}"))),
        _ => {
            let names = names.collect::<Vec<_>>().join(" ");
            let message =
                format!("a container name must be specified for pod {name}, choose one of: [{names}]");
            Err(Status::bad_request(message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn a_container_is_named_or_the_only_one() {
        let containers = |names: &[&str]| names.iter().map(|name| json!({"name": name})).collect::<Vec<_>>();
        let check = |own: &[&str], asked: &str, expected: &str| {
            let pod = json!({"metadata": {"name": "p"}, "spec": {
                "containers": containers(own),
                "initContainers": containers(&["init"]),
                "ephemeralContainers": containers(&["debug"]),
            }});
            assert_eq!(
                choose(&pod, asked).map_err(|status| status.message),
                match expected {
                    message if message.contains(' ') => Err(message.to_owned()),
                    name => Ok(name),
                }
            );
        };
        check(&["a"], "", "a");
        check(&["a", "b"], "b", "b");
        check(&["a"], "init", "init");
        check(&["a"], "debug", "debug");
        check(&["a"], "x", "container x is not valid for pod p");
        let choices = "[init a b debug]";
        let message = format!("a container name must be specified for pod p, choose one of: {choices}");
        check(&["a", "b"], "", &message);
        check(&[], "", "a container name must be specified for pod p");
    }
}
