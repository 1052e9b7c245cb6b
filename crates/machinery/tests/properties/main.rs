//! Property tests: laws, models, and the fuzz targets on a fixed set of inputs.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod options;
mod patches;
mod quantities;
mod selectors;
mod smoke;
