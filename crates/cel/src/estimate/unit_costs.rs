//! The costs of single steps.

use super::range::Estimate;

/// The cost of a use of a variable or field.
pub(super) const SELECT: Estimate = Estimate::fixed(1);
/// The cost of a list literal, besides its elements.
pub(super) const LIST: Estimate = Estimate::fixed(10);
/// The cost of a map literal, besides its entries.
pub(super) const MAP: Estimate = Estimate::fixed(30);
/// The cost of a message literal, besides its fields.
pub(super) const MESSAGE: Estimate = Estimate::fixed(40);
/// The cost of each visited character.
pub(super) const STRING_TRAVERSAL: f64 = 0.1;
/// The cost of each character of a regular expression for each character of the text.
pub(super) const REGEX_LENGTH: f64 = 0.25;
