use super::*;
use crate::contract::StorageFactory;

struct Embedded(tempfile::TempDir);

impl Embedded {
    fn new() -> Embedded {
        Embedded(tempfile::tempdir().unwrap())
    }
}

impl StorageFactory for Embedded {
    fn open(&self) -> BoxFuture<'_, Arc<dyn Storage>> {
        Box::pin(async {
            let storage = EmbeddedStorage::open(self.0.path(), &EmbeddedOptions::default()).unwrap();
            Arc::new(storage) as Arc<dyn Storage>
        })
    }
}

mod contract {
    use super::*;

    crate::storage_contract!(Embedded::new());
    crate::durable_storage_contract!(Embedded::new());
}
