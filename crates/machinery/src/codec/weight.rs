//! How much memory a tree may take that is decoded from a body.
//!
//! A value of two bytes can be an object in the tree, which takes hundreds: without a bound, the largest body that is
//! read makes a tree a hundred times its size. The amounts are those of `serde_json`'s types on 64 bits, whose objects
//! are B-trees that take their memory eleven members at a time.

use super::error::{DecodeError, Fallible};

/// An object with its first member, and one without: defaults give it some.
pub(super) const OBJECT: usize = 640;
/// Each other member of an object: B-trees that grow at their end are half full.
pub(super) const MEMBER: usize = 112;
/// A list with its first items.
pub(super) const LIST: usize = 144;
/// An item of a list, which takes twice its size while the list grows.
pub(super) const ITEM: usize = 64;
/// A text, beside its bytes.
pub(super) const TEXT: usize = 16;
/// A node of YAML that is not a value yet.
pub(super) const NODE: usize = 192;

/// The tokens around a separator of YAML.
pub(super) const TOKENS: usize = 352;

/// Every body may have so much, in bytes: what makes sense may be small and manifold.
const ALLOWANCE: usize = 16 << 20;
/// And so many times its own size.
const FACTOR: usize = 16;

/// What is left for the rest of a tree, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Weight(usize);

impl Weight {
    /// For what was let in before, or was made by the server: it is as large as it is.
    pub(crate) const UNLIMITED: Weight = Weight(usize::MAX);

    /// For a body of so many bytes.
    pub(crate) fn of_body(length: usize) -> Weight {
        Weight(length.saturating_mul(FACTOR).saturating_add(ALLOWANCE))
    }

    /// Notes that the tree has grown.
    pub(crate) fn add(&mut self, bytes: usize) -> Fallible<()> {
        match self.0.checked_sub(bytes) {
            Some(left) => {
                self.0 = left;
                Ok(())
            }
            None => Err(Box::new(DecodeError::TooHeavy)),
        }
    }
}
