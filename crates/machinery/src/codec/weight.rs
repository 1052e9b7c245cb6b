//! Bounds the memory of a tree that is decoded from a body.
//!
//! A value of two bytes can be an object that takes hundreds of bytes in the tree: without a bound, the largest
//! accepted body makes a tree a hundred times its size. The constants are in bytes and estimate the types of `pintle-tree`
//! on 64 bits.

use super::error::{DecodeError, Fallible};

/// An object with its first member, or an empty one, since defaults may add members. The first allocation takes 256 bytes;
/// the rest stands for what is done with each object after it is decoded, which this bound limits too.
pub(super) const OBJECT: usize = 672;
/// Each further member of an object, whose capacity may be twice its length.
pub(super) const MEMBER: usize = 128;
/// A list with its first items.
pub(super) const LIST: usize = 144;
/// An item of a list, whose capacity may be twice its length.
pub(super) const ITEM: usize = 64;
/// A text, besides its bytes.
pub(super) const TEXT: usize = 16;
/// A YAML node before it becomes a value.
pub(super) const NODE: usize = 192;

/// The tokens around a separator of YAML.
pub(super) const TOKENS: usize = 352;

/// The allowance of every body, in bytes: valid bodies may consist of many small values.
const ALLOWANCE: usize = 16 << 20;
/// The allowance per byte of the body, in bytes.
const FACTOR: usize = 16;

/// The budget that remains for the rest of a tree, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Weight(usize);

impl Weight {
    /// For trusted input: stored objects, and texts that the server wrote.
    pub(crate) const UNLIMITED: Weight = Weight(usize::MAX);

    /// For a body of `length` bytes.
    pub(crate) fn of_body(length: usize) -> Weight {
        Weight(length.saturating_mul(FACTOR).saturating_add(ALLOWANCE))
    }

    /// For the response to a request of `question` bytes.
    pub(crate) fn of_answer(question: usize) -> Weight {
        Weight::of_body(question.saturating_mul(2))
    }

    /// Counts growth of the tree; fails when the bound is exceeded.
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
