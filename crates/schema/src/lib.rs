//! Field facts of API types: the built-in v1.36 table and structural schemas.
