//! Snapshots, event log and watchers over any storage engine.
