//! Bounds on the sizes of values.

use super::range::Estimate;
use crate::types::Type;
use std::rc::Rc;

/// Provides bounds on the sizes of variables and their parts.
pub trait SizeEstimator: Sync {
    /// The size of a value, in the units of `size()`. `path` leads from a variable through fields to the value; the
    /// parts of lists and maps are `@items`, `@indices`, `@keys` and `@values`. It is empty for a value without a path.
    fn size(&self, path: &[Rc<str>], value_type: &Type) -> Option<Estimate>;
}

/// Provides no bounds: every list, map and string may have any size.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnknownSizes;

impl SizeEstimator for UnknownSizes {
    fn size(&self, _path: &[Rc<str>], _value_type: &Type) -> Option<Estimate> {
        None
    }
}
