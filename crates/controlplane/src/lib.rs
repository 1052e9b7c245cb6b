//! The built-in groups assembled: allocators, bootstrap objects, subresources.
