//! How much memory the bodies of all requests in flight may take together.
//!
//! A body takes more memory than its bytes: it is decoded into a tree, of which an update makes a few. How much that is at
//! most can be told from the bytes. A request whose body is too much beside those that are in flight is refused before it
//! is decoded; the client tries again a little later.

use bytes::Bytes;
use pintle_machinery::Status;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What all bodies in flight may take by default, in bytes: half of what a small machine has for a server.
pub const DEFAULT_BODY_MEMORY: usize = 512 << 20;

/// Permits are for so many bytes.
const UNIT: usize = 1024;
/// How many trees of a body there are at once: what was sent, what was stored, and what becomes of them.
const TREES: usize = 3;
/// What the decoders allow a tree to take, whatever its body says: so much, and so many times the body.
const TREE_MAX: usize = 16 << 20;
const TREE_FACTOR: usize = 16;

/// The memory that bodies share. Clones are the same one.
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
    /// A budget of so many bytes.
    pub fn new(bytes: usize) -> BodyBudget {
        let all = (bytes / UNIT).clamp(1, Semaphore::MAX_PERMITS).min(u32::MAX as usize);
        BodyBudget { permits: Arc::new(Semaphore::new(all)), all }
    }

    /// A part of the budget for a body that is about to be read.
    pub(crate) fn charge(&self) -> Charge {
        Charge { budget: self.clone(), permit: None, taken: 0 }
    }
}

/// What a body has of the budget, until it is dropped.
pub(crate) struct Charge {
    budget: BodyBudget,
    permit: Option<OwnedSemaphorePermit>,
    taken: usize,
}

impl Charge {
    /// Takes as much as so many bytes need, with what it has already. What is more than the whole budget gets all of it.
    ///
    /// # Errors
    /// 429 when others have it.
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

    /// The body with its part of the budget, which is given back when nobody has the bytes any more.
    ///
    /// # Errors
    /// 429 when what it takes to decode the body is not there.
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

/// What a body takes at most, with the trees that are made of it.
fn decoded_size(body: &[u8]) -> usize {
    let count = |wanted: u8| body.iter().filter(|byte| **byte == wanted).count();
    let first = body.iter().find(|byte| !byte.is_ascii_whitespace());
    let tree = match first {
        // JSON: an object takes what eleven members take; what is between commas is a member or an item.
        Some(b'{' | b'[') => 2 * body.len() + 640 * count(b'{') + 144 * count(b'[') + 128 * count(b','),
        // A message: nothing can be told from its bytes.
        Some(b'k') if body.starts_with(b"k8s\0") => 80 * body.len(),
        // YAML: a line is a member or an item, and may begin an object; there may be JSON in it.
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
        // Seven times their size each.
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
        // What is more than there is gets all there is.
        let all = read(1 << 20).unwrap();
        assert!(read(1).is_err());
        drop(all);
        read(1).unwrap();
    }

    #[test]
    fn what_is_small_and_manifold_counts_for_what_it_becomes() {
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
