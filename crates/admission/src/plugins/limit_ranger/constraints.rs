//! Computes requests and limits and checks them against bounds, with the messages that clients know.

use crate::plugins::quantities::{Quantities, quantities, sum_of_containers};
use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::{Quantity, Value, ValueExt};

/// Larger amounts are compared as whole numbers and not in thousandths.
const MAX_MILLI_VALUE: i64 = i64::MAX / 1000;

/// The requests and limits of a container, pod or claim.
#[derive(Debug, Default)]
pub(super) struct Resources {
    requests: Quantities,
    limits: Quantities,
}

impl Resources {
    pub(super) fn of_container(container: &Value) -> Resources {
        Resources {
            requests: quantities(container.map_at("resources.requests")),
            limits: quantities(container.map_at("resources.limits")),
        }
    }

    pub(super) fn of_claim(claim: &Value) -> Resources {
        Resources { requests: quantities(claim.map_at("spec.resources.requests")), limits: Quantities::new() }
    }

    /// The resources of a pod: the sum of its containers, the peak of its init containers, or the pod-level values.
    pub(super) fn of_pod(pod: &Value) -> Resources {
        Resources { requests: of_pod(pod, "requests"), limits: of_pod(pod, "limits") }
    }
}

fn of_pod(pod: &Value, list: &str) -> Quantities {
    let path = format!("resources.{list}");
    let mut total = sum_of_containers(pod, |container| quantities(container.map_at(&path)));
    for (name, quantity) in quantities(pod.map_at(&format!("spec.{path}"))) {
        if enabled(Gate::PodLevelResources) && matches!(name.as_str(), "cpu" | "memory") {
            total.insert(name, quantity);
        }
    }
    total
}

/// The messages for bounds that a container or pod violates.
pub(super) fn check_compute(limit: &Value, resources: &Resources) -> Vec<String> {
    let minima = bounds(limit, "min").filter_map(|bound| bound.minimum(resources));
    let maxima = bounds(limit, "max").filter_map(|bound| bound.maximum(resources));
    let ratios = bounds(limit, "maxLimitRequestRatio").filter_map(|bound| bound.ratio(resources));
    minima.chain(maxima).chain(ratios).collect()
}

/// The messages for bounds that a claim violates; a claim has only requests.
pub(super) fn check_storage(limit: &Value, resources: &Resources) -> Vec<String> {
    let minima = bounds(limit, "min").filter_map(|bound| bound.minimum(resources));
    let maxima = bounds(limit, "max").filter_map(|bound| bound.maximum_request(resources));
    minima.chain(maxima).collect()
}

/// One bound of one resource.
struct Bound<'a> {
    limit_type: &'a str,
    name: String,
    enforced: Quantity,
}

fn bounds<'a>(limit: &'a Value, member: &str) -> impl Iterator<Item = Bound<'a>> {
    let limit_type = limit.str_at("type");
    quantities(limit.map_at(member)).into_iter().map(move |(name, enforced)| Bound {
        limit_type,
        name,
        enforced,
    })
}

impl Bound<'_> {
    fn minimum(&self, resources: &Resources) -> Option<String> {
        let (request, limit) = self.asked(resources);
        let too_small = |quantity: &Quantity| self.compared(quantity) < self.compared(&self.enforced);
        let why = match (request, limit) {
            (None, _) => ".  No request is specified".to_owned(),
            (Some(request), _) if too_small(request) => format!(", but request is {request}"),
            (_, Some(limit)) if too_small(limit) => format!(", but limit is {limit}"),
            _ => return None,
        };
        Some(self.refusal("minimum", &why))
    }

    fn maximum(&self, resources: &Resources) -> Option<String> {
        let (request, limit) = self.asked(resources);
        let why = match (request, limit) {
            (_, None) => ".  No limit is specified".to_owned(),
            (_, Some(limit)) if self.is_exceeded_by(limit) => format!(", but limit is {limit}"),
            (Some(request), _) if self.is_exceeded_by(request) => format!(", but request is {request}"),
            _ => return None,
        };
        Some(self.refusal("maximum", &why))
    }

    fn maximum_request(&self, resources: &Resources) -> Option<String> {
        let why = match resources.requests.get(&self.name) {
            None => ".  No request is specified".to_owned(),
            Some(request) if self.is_exceeded_by(request) => format!(", but request is {request}"),
            Some(_) => return None,
        };
        Some(self.refusal("maximum", &why))
    }

    fn ratio(&self, resources: &Resources) -> Option<String> {
        let (request, limit) = self.asked(resources);
        let nonzero =
            |quantity: Option<&Quantity>| quantity.map(|one| self.compared(one)).filter(|n| *n != 0);
        let why = match (nonzero(request), nonzero(limit)) {
            (None, _) => "no request is specified or request is 0".to_owned(),
            (_, None) => "no limit is specified or limit is 0".to_owned(),
            (Some(request), Some(limit)) => {
                #[expect(clippy::cast_precision_loss, reason = "the ratio is compared as Kubernetes does")]
                let (observed, allowed) =
                    (limit as f64 / request as f64, self.enforced.milli_value() as f64 / 1000.0);
                if observed <= allowed {
                    return None;
                }
                format!("provided ratio is {observed:.6}")
            }
        };
        let Bound { limit_type, name, enforced } = self;
        Some(format!("{name} max limit to request ratio per {limit_type} is {enforced}, but {why}"))
    }

    fn asked<'r>(&self, resources: &'r Resources) -> (Option<&'r Quantity>, Option<&'r Quantity>) {
        (resources.requests.get(&self.name), resources.limits.get(&self.name))
    }

    fn is_exceeded_by(&self, quantity: &Quantity) -> bool {
        self.compared(quantity) > self.compared(&self.enforced)
    }

    fn compared(&self, quantity: &Quantity) -> i64 {
        match quantity.value() <= MAX_MILLI_VALUE && self.enforced.value() <= MAX_MILLI_VALUE {
            true => quantity.milli_value(),
            false => quantity.value(),
        }
    }

    fn refusal(&self, bound: &str, why: &str) -> String {
        let Bound { limit_type, name, enforced } = self;
        format!("{bound} {name} usage per {limit_type} is {enforced}{why}")
    }
}
