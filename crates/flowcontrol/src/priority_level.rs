//! Priority levels: their part of the server's seats, and their queues
//! (<https://kubernetes.io/docs/concepts/cluster-administration/flow-control/#prioritylevelconfiguration>).

use crate::dealer::{Dealer, DealerError};
use pintle_machinery::{Value, ValueExt, meta::ObjectMeta};

/// The priority level without a limit.
pub const EXEMPT: &str = "exempt";
/// The priority level of requests that no other schema matches.
pub const CATCH_ALL: &str = "catch-all";

/// A parsed priority level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriorityLevelConfiguration {
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Its concurrency shares.
    pub shares: u64,
    /// The part of its seats that other levels may borrow, in percent.
    pub lendable_percent: u64,
    /// The seats it may borrow, in percent of its own; `None` is no limit.
    pub borrowing_limit_percent: Option<u64>,
    /// The treatment of requests beyond the limit.
    pub response: LimitResponse,
}

/// The treatment of requests beyond the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitResponse {
    /// There is no limit.
    Exempt,
    /// They are refused.
    Reject,
    /// They are queued.
    Queue(Queuing),
}

/// The queues of a priority level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queuing {
    /// The number of queues.
    pub queues: usize,
    /// Selects the queues that a flow may use.
    pub dealer: Dealer,
    /// The number of queues that a flow may use.
    pub hand_size: usize,
    /// The largest number of waiting requests in each queue.
    pub queue_length_limit: usize,
}

/// The reason why a priority level is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BrokenPriorityLevel {
    /// The type and the parts of the spec do not match.
    #[error("the type and the parts of the spec do not belong together")]
    Union,
    /// Only the level `exempt` is exempt.
    #[error("only the level exempt is exempt")]
    Exempt,
    /// The queues are invalid.
    #[error("its queues make no sense: {0}")]
    Queuing(#[from] DealerError),
}

impl PriorityLevelConfiguration {
    /// Reads an object.
    ///
    /// # Errors
    /// When validation would reject it.
    pub fn read(object: &Value) -> Result<PriorityLevelConfiguration, BrokenPriorityLevel> {
        let (exempt, limited) = (object.at("spec.exempt"), object.at("spec.limited"));
        let part = match (object.str_at("spec.type"), exempt, limited) {
            ("Exempt", Some(part), None) | ("Limited", None, Some(part)) => part,
            _ => return Err(BrokenPriorityLevel::Union),
        };
        if (object.name() == EXEMPT) != exempt.is_some() {
            return Err(BrokenPriorityLevel::Exempt);
        }
        let queuing = part.at("limitResponse.queuing");
        let response = match (exempt, part.str_at("limitResponse.type"), queuing) {
            (Some(_), _, _) => LimitResponse::Exempt,
            (None, "Reject", None) => LimitResponse::Reject,
            (None, "Queue", Some(queuing)) => {
                let number = |member: &str| unsigned(queuing, member).unwrap_or_default() as usize;
                let (queues, hand_size) = (number("queues"), number("handSize"));
                LimitResponse::Queue(Queuing {
                    queues,
                    dealer: Dealer::new(queues, hand_size)?,
                    hand_size,
                    queue_length_limit: number("queueLengthLimit"),
                })
            }
            _ => return Err(BrokenPriorityLevel::Union),
        };
        Ok(PriorityLevelConfiguration {
            name: object.name().to_owned(),
            uid: object.str_at("metadata.uid").to_owned(),
            shares: unsigned(part, "nominalConcurrencyShares").unwrap_or_default(),
            lendable_percent: unsigned(part, "lendablePercent").unwrap_or_default(),
            borrowing_limit_percent: unsigned(part, "borrowingLimitPercent"),
            response,
        })
    }

    /// Whether the level has no limit.
    pub fn is_exempt(&self) -> bool {
        self.response == LimitResponse::Exempt
    }
}

fn unsigned(object: &Value, member: &str) -> Option<u64> {
    object.i64_at(member).map(|number| u64::try_from(number).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn levels_are_read_as_far_as_they_make_sense() {
        let read = |name: &str, spec: Value| {
            PriorityLevelConfiguration::read(&json!({"metadata": {"name": name}, "spec": spec}))
        };
        let queue = json!({"type": "Limited", "limited": {
            "nominalConcurrencyShares": 20, "lendablePercent": 50, "limitResponse": {"type": "Queue",
            "queuing": {"queues": 128, "handSize": 6, "queueLengthLimit": 50}}}});
        let level = read("a", queue).unwrap();
        assert_eq!((level.shares, level.lendable_percent, level.borrowing_limit_percent), (20, 50, None));
        assert!(matches!(level.response, LimitResponse::Queue(Queuing { queues: 128, hand_size: 6, .. })));
        let exempt = json!({"type": "Exempt", "exempt": {"nominalConcurrencyShares": 3}});
        assert!(read(EXEMPT, exempt.clone()).unwrap().is_exempt());
        let check = |name: &str, spec: Value, error: BrokenPriorityLevel| {
            assert_eq!(read(name, spec), Err(error));
        };
        check("a", exempt, BrokenPriorityLevel::Exempt);
        let reject = json!({"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}});
        check(EXEMPT, reject, BrokenPriorityLevel::Exempt);
        check("a", json!({"type": "Limited"}), BrokenPriorityLevel::Union);
        check(
            "a",
            json!({"type": "Limited", "limited": {"limitResponse": {"type": "Queue"}}}),
            BrokenPriorityLevel::Union,
        );
        let no_queues =
            json!({"type": "Limited", "limited": {"limitResponse": {"type": "Queue", "queuing": {}}}});
        check("a", no_queues, BrokenPriorityLevel::Queuing(DealerError::Nothing));
    }
}
