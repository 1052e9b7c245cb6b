//! The observer of a work queue.

/// Is notified when names are added to a queue, begun and done. It is called with the queue locked, and must not call
/// the queue.
pub(crate) trait Observer: Send + Sync {
    /// A name was added; so many wait now.
    fn added(&self, name: &str, depth: usize);
    /// The work on a name begins; so many wait now.
    fn begun(&self, name: &str, depth: usize);
    /// The work on a name is done.
    fn done(&self, name: &str, is_retried: bool);
}
