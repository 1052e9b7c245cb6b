//! A cacher over the memory engine. Time is paused: what waits, waits for events.

mod bookmarks;
mod concurrency;
mod dispatch;
mod follow;
mod history;
mod read_source;
mod reads;
mod second_look;
mod watch;
