//! Who is told of the names in a work queue.

/// Learns what happens to the names of a queue. It is called with the queue locked, and must not call it.
pub(crate) trait Observer: Send + Sync {
    /// A name was added; so many wait now.
    fn added(&self, name: &str, depth: usize);
    /// The work on a name begins; so many wait now.
    fn begun(&self, name: &str, depth: usize);
    /// The work on a name is done.
    fn done(&self, name: &str, is_retried: bool);
}
