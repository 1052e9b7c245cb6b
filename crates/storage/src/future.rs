//! The futures of object-safe traits.

use std::{future::Future, pin::Pin};

/// A boxed future, as the object-safe [`crate::Storage`] trait returns it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
