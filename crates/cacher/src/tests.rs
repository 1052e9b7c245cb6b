//! Tests of a cacher over the memory engine. Time is paused.

mod bookmarks;
mod concurrency;
mod dispatch;
mod follow;
mod held;
mod history;
mod pages;
mod read_source;
mod reads;
mod second_look;
mod watch;
