//! Fuzzes the answers of admission webhooks.

use pintle_dynamic_admission::webhooks::{InvalidAnswer, ReviewVersion, answer};
use pintle_webhook::Response;

/// The uid of the review.
const UID: &str = "705ab4f5-6393-11e8-b7cc-42010a800002";

/// An answer of any bytes is usable or has an error; the code of a refusal is one of a failure.
pub(crate) fn answers(data: &[u8]) {
    let response = Response {
        status: 200,
        content_type: "application/json".to_owned(),
        retry_after: None,
        body: data.to_vec().into(),
        question: 1000,
    };
    for version in [ReviewVersion::V1, ReviewVersion::V1beta1] {
        for is_mutating in [true, false] {
            match answer(&response, version, UID, is_mutating) {
                Ok(answer) => {
                    let denial = answer.denial("w");
                    assert_eq!(denial.is_none(), answer.is_allowed());
                    assert!(denial.is_none_or(|denial| (400..1000).contains(&denial.code)));
                }
                Err(InvalidAnswer::Unreadable(why) | InvalidAnswer::Refused(why)) => assert!(!why.is_empty()),
            }
        }
    }
}
