//! The decisions of an election, from the candidates, the lease and the time alone.

use super::lease::{is_expired, renewed};
use jiff::{SignedDuration, Timestamp};
use pintle_api::coordination::lease_candidate::Version;
use pintle_machinery::{
    Value, ValueExt, json,
    meta::{ObjectMeta, parse_time},
};
use std::cmp::Ordering;

/// The time that candidates have for an answer.
const ELECTION: SignedDuration = SignedDuration::from_secs(5);
/// The time after its last renewal for which a candidate stands.
const VALIDITY: SignedDuration = SignedDuration::from_mins(30);
const LEASE_SECONDS: i64 = 5;
/// The strategy that this server elects by.
const OLDEST_EMULATION_VERSION: &str = "OldestEmulationVersion";

/// The next step of an election.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step<'a> {
    /// Nothing: the holder is the best candidate, or answers are awaited.
    Wait,
    /// Ask these candidates whether they still stand.
    Ping(Vec<&'a Value>),
    /// Write the result to the lease.
    Elect(Elected),
}

/// The result of an election.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Elected {
    strategy: String,
    /// The holder; `None` when another controller elects by the strategy.
    holder: Option<String>,
}

/// The next step for a lease.
pub(super) fn next_step<'a>(candidates: &[&'a Value], lease: Option<&Value>, now: Timestamp) -> Step<'a> {
    let standing: Vec<&'a Value> =
        candidates.iter().copied().filter(|candidate| !is_candidate_expired(candidate, now)).collect();
    if standing.is_empty() || !is_needed(&standing, lease, now) {
        return Step::Wait;
    }
    let is_recent = |time: Option<Timestamp>| time.is_some_and(|time| now.duration_since(time) < ELECTION);
    let mut silent = Vec::new();
    let mut is_waiting = false;
    for candidate in &standing {
        let (ping, renewal) = (time_of(candidate, "pingTime"), time_of(candidate, "renewTime"));
        let is_unanswered = renewal < ping;
        if is_recent(ping) && is_unanswered {
            is_waiting = true;
        } else if !is_recent(renewal) && (ping.is_none() || (!is_recent(ping) && !is_unanswered)) {
            silent.push(*candidate);
        }
    }
    if !silent.is_empty() {
        return Step::Ping(silent);
    }
    if is_waiting {
        return Step::Wait;
    }
    let answered: Vec<&Value> =
        standing.into_iter().filter(|candidate| is_recent(time_of(candidate, "renewTime"))).collect();
    let Some(strategy) = strategy_of(&answered) else { return Step::Wait };
    let holder = (strategy == OLDEST_EMULATION_VERSION).then(|| best(&answered));
    match holder {
        Some(None) => Step::Wait,
        holder => Step::Elect(Elected {
            strategy: strategy.to_owned(),
            holder: holder.flatten().map(|candidate| candidate.name().to_owned()),
        }),
    }
}

/// The candidates that have not renewed for long.
pub(super) fn expired_candidates(candidates: &[Value], now: Timestamp) -> impl Iterator<Item = &Value> {
    candidates.iter().filter(move |candidate| is_candidate_expired(candidate, now))
}

impl Elected {
    /// The new lease.
    pub(super) fn lease(&self, namespace: &str, name: &str, now: Timestamp) -> Value {
        let mut lease = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"namespace": namespace, "name": name},
            "spec": {"strategy": self.strategy, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": renewed(now)},
        });
        if let Some(holder) = &self.holder {
            lease.set("spec.holderIdentity", holder.as_str());
        }
        lease
    }

    /// The lease with the result: the holder of an expired lease is replaced, and that of another is asked to step down
    /// by the name of the preferred holder.
    pub(super) fn applied_to(&self, mut lease: Value, now: Timestamp) -> Value {
        lease.set("spec.strategy", self.strategy.as_str());
        let Some(holder) = &self.holder else { return lease };
        let present = lease.str_at("spec.holderIdentity").to_owned();
        if present.is_empty() || (is_expired(&lease, now) && present != *holder) {
            lease.remove_at("spec.preferredHolder");
            lease.remove_at("spec.acquireTime");
            lease.set("spec.holderIdentity", holder.as_str());
            lease.set("spec.renewTime", renewed(now));
            lease.set("spec.leaseDurationSeconds", LEASE_SECONDS);
        } else if present != *holder {
            lease.set("spec.preferredHolder", holder.as_str());
        }
        lease
    }
}

/// Whether the holder is to be elected anew: it is missing, it is not the best candidate, or candidates have to be asked
/// whether they still stand.
fn is_needed(candidates: &[&Value], lease: Option<&Value>, now: Timestamp) -> bool {
    let Some(lease) = lease else { return true };
    let holder = lease.str_at("spec.holderIdentity");
    if holder.is_empty() || is_expired(lease, now) {
        return true;
    }
    let is_half_expired = |candidate: &&Value| {
        time_of(candidate, "renewTime").is_some_and(|renewal| now.duration_since(renewal) > VALIDITY / 2)
    };
    if candidates.iter().any(is_half_expired) {
        return true;
    }
    match strategy_of(candidates) {
        Some(OLDEST_EMULATION_VERSION) => best(candidates).is_some_and(|best| best.name() != holder),
        _ => false,
    }
}

/// The strategy of the candidates with the newest program; `None` when these differ.
fn strategy_of<'a>(candidates: &[&'a Value]) -> Option<&'a str> {
    let newest = candidates.iter().map(|candidate| version_of(candidate, "binaryVersion")).max()?;
    let of_newest = candidates.iter().filter(|candidate| version_of(candidate, "binaryVersion") == newest);
    let mut strategies = of_newest.map(|candidate| candidate.str_at("spec.strategy"));
    let first = strategies.next()?;
    strategies.all(|strategy| strategy == first).then_some(first)
}

/// The candidate with the oldest emulation version, of these the one with the oldest program, of these the first.
fn best<'a>(candidates: &[&'a Value]) -> Option<&'a Value> {
    let valid = candidates.iter().copied().filter(|candidate| {
        ["emulationVersion", "binaryVersion"].iter().all(|field| parsed(candidate, field).is_some())
    });
    let compare = |one: &&Value, other: &&Value| -> Ordering {
        let by = |field: &str| version_of(one, field).cmp(&version_of(other, field));
        let created = |candidate: &Value| parse_time(candidate.str_at("metadata.creationTimestamp"));
        by("emulationVersion")
            .then_with(|| by("binaryVersion"))
            .then_with(|| created(one).cmp(&created(other)))
    };
    valid.min_by(compare)
}

fn parsed(candidate: &Value, field: &str) -> Option<Version> {
    Version::parse(candidate.str_at(&format!("spec.{field}")))
}

fn version_of(candidate: &Value, field: &str) -> Version {
    parsed(candidate, field).unwrap_or_default()
}

fn time_of(candidate: &Value, field: &str) -> Option<Timestamp> {
    parse_time(candidate.str_at(&format!("spec.{field}")))
}

fn is_candidate_expired(candidate: &Value, now: Timestamp) -> bool {
    time_of(candidate, "renewTime").is_none_or(|renewal| now.duration_since(renewal) > VALIDITY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_with_the_newest_program_choose_the_strategy() {
        let candidate =
            |version: &str, strategy: &str| json!({"spec": {"binaryVersion": version, "strategy": strategy}});
        let check = |candidates: &[Value], expected: Option<&str>| {
            assert_eq!(strategy_of(&candidates.iter().collect::<Vec<_>>()), expected);
        };
        check(&[], None);
        check(&[candidate("1.36.0", "a/b"), candidate("1.35.0", "c/d")], Some("a/b"));
        check(&[candidate("1.36.0", "a/b"), candidate("1.36.0", "c/d")], None);
    }

    #[test]
    fn times_at_the_ends_of_their_range_are_compared() {
        let now = Timestamp::UNIX_EPOCH;
        for (time, is_expired) in
            [("9999-12-30T21:59:59.000000Z", false), ("0001-01-01T00:00:00.000000Z", true)]
        {
            let candidate = json!({"metadata": {"name": "c"}, "spec": {
                "leaseName": "l", "binaryVersion": "1.36.0", "strategy": OLDEST_EMULATION_VERSION,
                "renewTime": time, "pingTime": time,
            }});
            assert_eq!(is_candidate_expired(&candidate, now), is_expired, "{time}");
            let lease = json!({"spec": {"holderIdentity": "c", "renewTime": renewed(now), "leaseDurationSeconds": 5}});
            let step = next_step(&[&candidate], Some(&lease), now);
            assert_eq!(step, Step::Wait, "{time}");
        }
    }

    #[test]
    fn other_controllers_elect_by_other_strategies() {
        let now = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(1);
        let candidate = json!({"metadata": {"name": "c"}, "spec": {
            "leaseName": "l", "binaryVersion": "1.36.0", "strategy": "example.com/best", "renewTime": renewed(now),
        }});
        let Step::Elect(elected) = next_step(&[&candidate], None, now) else { panic!("an election is due") };
        let lease = elected.lease("n", "l", now);
        assert_eq!(lease.at("spec.holderIdentity"), None);
        assert_eq!(lease.str_at("spec.strategy"), "example.com/best");
    }
}
