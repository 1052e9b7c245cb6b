//! What a resource is: declarations, strategies, table convertors.
