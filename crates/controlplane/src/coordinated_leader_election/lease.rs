//! The times of leases.

use jiff::{SignedDuration, Timestamp};
use pintle_machinery::{GroupResource, Value, ValueExt, meta::parse_time};

pub(super) fn leases() -> GroupResource {
    GroupResource::new("coordination.k8s.io", "leases")
}

/// A time as it is written to leases and candidates.
pub(super) fn renewed(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// Whether a lease was not renewed in its time.
pub(super) fn is_expired(lease: &Value, now: Timestamp) -> bool {
    let duration = lease.i64_at("spec.leaseDurationSeconds").map(SignedDuration::from_secs);
    let renewal = parse_time(lease.str_at("spec.renewTime"));
    renewal.zip(duration).is_none_or(|(renewal, duration)| now.duration_since(renewal) > duration)
}
