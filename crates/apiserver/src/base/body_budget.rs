//! Bounds the memory that the bodies of all requests in flight take together.
//!
//! A body takes more memory than its bytes: it is decoded into a tree, and an update makes several trees. The bytes of
//! a body give an upper bound for that. A request whose body does not fit beside those in flight is refused with 429
//! before it is decoded, and the client retries.

use bytes::Bytes;
use memchr::memchr_iter;
use pintle_machinery::Status;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The default budget for all bodies in flight, in bytes: half the memory that a small machine has for a server.
pub const DEFAULT_BODY_MEMORY: usize = 512 << 20;

/// The bytes that one permit of the semaphore stands for.
const UNIT: usize = 1024;
/// How many trees of a body exist at once: the sent object, the stored object and the resulting object.
const TREES: usize = 3;
/// The decoders' own bound on the size of a tree, in bytes: `TREE_MAX + TREE_FACTOR * body length`.
const TREE_MAX: usize = 16 << 20;
const TREE_FACTOR: usize = 16;

/// The memory budget that request bodies share. Clones share one budget.
#[derive(Debug, Clone)]
pub struct BodyBudget {
    permits: Arc<Semaphore>,
    all: usize,
}

impl Default for BodyBudget {
    fn default() -> BodyBudget {
        BodyBudget::new(DEFAULT_BODY_MEMORY)
    }
}

impl BodyBudget {
    /// A budget of `bytes` bytes.
    pub fn new(bytes: usize) -> BodyBudget {
        let all = (bytes / UNIT).clamp(1, Semaphore::MAX_PERMITS).min(u32::MAX as usize);
        BodyBudget { permits: Arc::new(Semaphore::new(all)), all }
    }

    /// An empty charge for a body that is about to be read.
    pub(crate) fn charge(&self) -> Charge {
        Charge { budget: self.clone(), permit: None, taken: 0 }
    }
}

/// The share of the budget that one body holds; dropping it returns the share.
pub(crate) struct Charge {
    budget: BodyBudget,
    permit: Option<OwnedSemaphorePermit>,
    taken: usize,
}

impl Charge {
    /// Raises the charge to `bytes` bytes in total. A size above the whole budget takes the whole budget.
    ///
    /// # Errors
    /// 429 when other bodies hold the memory.
    pub(crate) fn raise_to(&mut self, bytes: usize) -> Result<(), Status> {
        let wanted = bytes.div_ceil(UNIT).min(self.budget.all);
        let Some(more) = wanted.checked_sub(self.taken).filter(|more| *more > 0) else { return Ok(()) };
        let number = u32::try_from(more).unwrap_or(u32::MAX);
        let Ok(permit) = self.budget.permits.clone().try_acquire_many_owned(number) else {
            return Err(Status::too_many_requests("Too many requests, please try again later.", 1));
        };
        self.taken = wanted;
        match &mut self.permit {
            Some(own) => own.merge(permit),
            None => self.permit = Some(permit),
        }
        Ok(())
    }

    /// Charges the body's decoded size. The charge is returned when the last clone of the bytes is dropped.
    ///
    /// # Errors
    /// 429 when the memory to decode the body is not available.
    pub(crate) fn settle(mut self, body: Bytes) -> Result<Bytes, Status> {
        struct Charged(Bytes, #[expect(dead_code, reason = "kept for what its drop does")] Charge);
        impl AsRef<[u8]> for Charged {
            fn as_ref(&self) -> &[u8] {
                &self.0
            }
        }
        self.raise_to(decoded_size(&body))?;
        Ok(Bytes::from_owner(Charged(body, self)))
    }
}

/// An upper bound of the bytes that a body and the trees made from it take.
fn decoded_size(body: &[u8]) -> usize {
    let count = |wanted: u8| memchr_iter(wanted, body).count();
    let first = body.iter().find(|byte| !byte.is_ascii_whitespace());
    let tree = match first {
        // JSON: an object takes as much as eleven members; each comma starts a member or an item.
        Some(b'{' | b'[') => 2 * body.len() + 640 * count(b'{') + 144 * count(b'[') + 128 * count(b','),
        // Protobuf: the structure cannot be estimated without decoding.
        Some(b'k') if body.starts_with(b"k8s\0") => 80 * body.len(),
        // YAML: each line is a member or an item and may start an object; flow style is JSON.
        _ => 2 * body.len() + 1024 * count(b'\n') + 640 * count(b',') + 640 * count(b'*'),
    };
    body.len() + TREES * tree.min(TREE_MAX + TREE_FACTOR * body.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_have_the_budget_as_long_as_they_are_there() {
        let budget = BodyBudget::new(100 << 10);
        let read = |size: usize| {
            let mut charge = budget.charge();
            charge.raise_to(size)?;
            charge.settle(Bytes::from(vec![b'x'; size]))
        };
        // Each body is charged seven times its size.
        let first = read(10 << 10).unwrap();
        let slice = first.slice(..3);
        let refused = read(10 << 10).unwrap_err();
        assert_eq!(
            (refused.code, refused.details.map(|details| details.retry_after_seconds)),
            (429, Some(1))
        );
        drop(first);
        assert!(read(10 << 10).is_err(), "a part of the body keeps it");
        drop(slice);
        // A body larger than the budget takes the whole budget.
        let all = read(1 << 20).unwrap();
        assert!(read(1).is_err());
        drop(all);
        read(1).unwrap();
    }

    #[test]
    fn many_small_values_count_as_the_tree_they_become() {
        let rows: [(&[u8], usize); 4] = [
            (b"{\"a\":\"some text\"}", 3_000),
            (b"[{\"a\":0},{\"a\":0}]", 5_000),
            (b"k8s\0\x01\x02", 2_000),
            (b"a: 1\nb: 2\n", 7_000),
        ];
        for (body, at_most) in rows {
            let size = decoded_size(body);
            assert!(size > at_most / 2 && size < at_most, "{}: {size}", String::from_utf8_lossy(body));
        }
        // Text in a large object costs little more than itself.
        let text = format!("{{\"data\":{{\"a\":\"{}\"}}}}", "x".repeat(1 << 20));
        assert!(decoded_size(text.as_bytes()) < 8 << 20);
    }
}
