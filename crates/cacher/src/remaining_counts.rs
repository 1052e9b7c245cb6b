//! Remembers the number of objects after each of the latest pages.
//!
//! A page that is read from the store has to say how many objects follow. The store may have to walk them to count
//! them; but the page before knew the number, less the objects of this one.

use pintle_storage::{Key, Revision};
use std::collections::VecDeque;

/// The number of pages that are remembered: as many lists may be read at the same time without a count by the store.
const MAX_PAGES: usize = 128;

/// The numbers of objects after the latest pages.
#[derive(Debug, Default)]
pub(crate) struct RemainingCounts {
    /// The oldest first.
    pages: VecDeque<(Page, usize)>,
}

/// The end of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) revision: Revision,
    /// The prefix of the list's keys.
    pub(crate) prefix: Box<str>,
    pub(crate) last: Key,
}

impl RemainingCounts {
    /// Remembers the number of objects after a page, and forgets the oldest page if there are too many.
    pub(crate) fn insert(&mut self, page: Page, remaining: usize) {
        if self.get(&page).is_some() {
            return;
        }
        if self.pages.len() >= MAX_PAGES {
            self.pages.pop_front();
        }
        self.pages.push_back((page, remaining));
    }

    /// The number of objects after a page, if it is remembered.
    pub(crate) fn get(&self, page: &Page) -> Option<usize> {
        // The page that is continued is mostly one of the newest.
        self.pages.iter().rev().find(|(other, _)| other == page).map(|(_, remaining)| *remaining)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_pages_are_remembered() {
        let page = |revision, last: &str| Page {
            revision: Revision(revision),
            prefix: "/p/".into(),
            last: Key::new(last),
        };
        let mut counts = RemainingCounts::default();
        for revision in 0..100_000 {
            counts.insert(page(revision, "/p/a"), 7);
            counts.insert(page(revision, "/p/a"), 7);
        }
        assert_eq!(counts.pages.len(), MAX_PAGES);
        assert_eq!(counts.get(&page(99_999, "/p/a")), Some(7));
        assert_eq!(counts.get(&page(100_000 - MAX_PAGES as u64, "/p/a")), Some(7));
        assert_eq!(counts.get(&page(0, "/p/a")), None);
        assert_eq!(counts.get(&page(99_999, "/p/b")), None);
        assert_eq!(counts.get(&Page { prefix: "/".into(), ..page(99_999, "/p/a") }), None);
    }
}
