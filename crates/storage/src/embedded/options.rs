//! The limits of a store.

/// The memory and disk limits of an [`EmbeddedStorage`](crate::EmbeddedStorage).
#[derive(Debug, Clone)]
pub struct EmbeddedOptions {
    /// The length of the WAL, in bytes, at about which it is checkpointed and restarted.
    pub wal_bytes: u64,
    /// The page cache of each connection, in bytes (one connection writes, a few read).
    pub cache_bytes: u64,
    /// The size in bytes beyond which the database refuses to grow, as if the disk were full; `None` is no limit.
    pub quota_bytes: Option<u64>,
    /// Free pages beyond this number of bytes, and beyond half of the database, are returned to the file system.
    pub spare_bytes: u64,
}

impl Default for EmbeddedOptions {
    fn default() -> EmbeddedOptions {
        EmbeddedOptions {
            wal_bytes: 16 << 20,
            cache_bytes: 2 << 20,
            quota_bytes: None,
            spare_bytes: 16 << 20,
        }
    }
}
