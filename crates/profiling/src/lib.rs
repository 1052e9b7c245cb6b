//! Samples the CPU time and the memory of the process, and encodes the samples as profiles that `go tool pprof` reads
//! (<https://github.com/google/pprof/blob/main/proto/profile.proto>).
//!
//! A sample is the stack of a thread, unwound by the tables that panics need anyway: frame pointers and debug information
//! are not required. CPU time is sampled while a profile is taken. Memory is sampled from [`heap::enable`] on, by an
//! allocator around the real one: every 2 MiB on average, so that the cost of an allocation is a subtraction
//! and that of a release one byte of a small table.
//!
//! This crate has `unsafe` code: a signal handler and an allocator need it. The handler calls nothing that allocates or
//! locks; what it touches is preallocated and atomic.

pub mod cpu;
pub mod heap;
mod profile;
mod symbols;
mod unwind;

pub use symbols::Symbols;
