//! Defines [`Undecoded`], an object that was found and is decoded later.

use pintle_machinery::{Status, Value};
use pintle_offload::weigh;
use std::{fmt, sync::Arc};

/// An object in the state in which it was found, to be decoded when it is needed: of many objects that are used one after
/// the other, one at a time takes the memory of a tree.
pub struct Undecoded<'a> {
    decode: Box<dyn Fn() -> Result<Arc<Value>, Status> + Send + Sync + 'a>,
    /// The size of what is decoded, in bytes.
    bytes: usize,
}

impl<'a> Undecoded<'a> {
    /// An object of `bytes` bytes that this function decodes.
    pub fn new(
        bytes: usize,
        decode: impl Fn() -> Result<Arc<Value>, Status> + Send + Sync + 'a,
    ) -> Undecoded<'a> {
        Undecoded { decode: Box::new(decode), bytes }
    }

    /// Decodes the object, off the workers if it is large.
    ///
    /// # Errors
    /// 500 when the object cannot be decoded.
    pub async fn decode(&self) -> Result<Arc<Value>, Status> {
        weigh(self.bytes).await;
        (self.decode)()
    }
}

impl From<Arc<Value>> for Undecoded<'_> {
    /// An object that is decoded already.
    fn from(object: Arc<Value>) -> Self {
        Undecoded::new(0, move || Ok(object.clone()))
    }
}

impl fmt::Debug for Undecoded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Undecoded").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}
