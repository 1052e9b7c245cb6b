//! Priority levels: how much of the server their requests get
//! (<https://kubernetes.io/docs/concepts/cluster-administration/flow-control/#prioritylevelconfiguration>).

use crate::dealer::{Dealer, DealerError};
use pintle_machinery::{Value, ValueExt, meta::ObjectMeta};

/// The priority level that is not limited.
pub const EXEMPT: &str = "exempt";
/// The priority level of what nobody thought of.
pub const CATCH_ALL: &str = "catch-all";

/// What a priority level says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriorityLevelConfiguration {
    /// Its name.
    pub name: String,
    /// Its identity.
    pub uid: String,
    /// Its part of the server.
    pub shares: u64,
    /// How much of that others may use, in percent.
    pub lendable_percent: u64,
    /// How much it may use of others, in percent of its own; `None` is without a limit.
    pub borrowing_limit_percent: Option<u64>,
    /// What becomes of requests that are too many.
    pub response: LimitResponse,
}

/// What becomes of requests that are too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitResponse {
    /// No request is ever too many.
    Exempt,
    /// They are refused.
    Reject,
    /// They wait.
    Queue(Queuing),
}

/// How requests wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queuing {
    /// How many queues there are.
    pub queues: usize,
    /// Which of them a flow may use.
    pub dealer: Dealer,
    /// How many queues a flow may use.
    pub hand_size: usize,
    /// How many requests may wait in each.
    pub queue_length_limit: usize,
}

/// Why a priority level cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BrokenPriorityLevel {
    /// The type and the parts do not belong together.
    #[error("the type and the parts of the spec do not belong together")]
    Union,
    /// Only the level `exempt` is exempt.
    #[error("only the level exempt is exempt")]
    Exempt,
    /// Requests cannot be queued like this.
    #[error("its queues make no sense: {0}")]
    Queuing(#[from] DealerError),
}

impl PriorityLevelConfiguration {
    /// Reads an object.
    ///
    /// # Errors
    /// When validation would have refused it.
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

    /// Whether its requests are never limited.
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
    use serde_json::json;

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
