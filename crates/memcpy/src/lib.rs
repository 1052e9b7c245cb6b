//! Replaces `memcpy` in a program that links this crate, for the copies that glibc makes at a twentieth of the speed.
//!
//! Glibc (2.36, of Debian 12) copies 2 KiB to some hundred KiB with `rep movsb`, which AMD's Zen 3 executes slowly when the
//! destination lies 1 to 31 bytes behind the source *within its page*: at 2 GB/s instead of 50 or more
//! (see also <https://lunnova.dev/articles/ryzen-slow-short-rep-mov/>). A server meets that all the time: large buffers begin at
//! a page, and a frame of TLS, HTTP/2, SPDY or WebSocket puts a header of 2 to 14 bytes before the payload. Decision
//! 18 has the measurements.
//!
//! All other copies are glibc's, by `memmove`, which is the same code. On other processors and C libraries, the crate is empty.
//!
//! A program that is to have it says `use pintle_memcpy as _;`. Libraries must not: the choice is the program's.

#[cfg(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"))]
mod aliased;

#[cfg(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"))]
pub use aliased::memcpy;
