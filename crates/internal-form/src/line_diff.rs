//! The unified diff of two texts, as Python's `difflib` makes it (<https://docs.python.org/3/library/difflib.html>): the
//! longest common block of lines first, then those before and after it.

use std::{collections::HashMap, mem, ops::Range};

/// The number of equal lines around a change.
const CONTEXT: usize = 3;
/// Texts with as many lines have popular ones, which occur in more than a hundredth of all lines and do not start a
/// common block.
const POPULAR_FROM: usize = 200;
/// The bound of the work for a diff, in lines and pairs of lines that are looked at. Lines after it count as changed.
const MAX_STEPS: usize = 2_000_000;

/// The lines that differ between two texts, with three lines of context; empty when they are equal.
pub(super) fn unified(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let mut matcher = Matcher::new(&old, &new);
    matcher.find(0..old.len(), 0..new.len());
    let mut text = String::new();
    for hunk in hunks(&changes(matcher.blocks, old.len(), new.len())) {
        write_hunk(&mut text, &hunk, &old, &new);
    }
    text
}

/// Lines that both texts have.
struct Block {
    old: usize,
    new: usize,
    len: usize,
}

/// Lines of the old text that lines of the new one replace; one of the ranges may be empty.
#[derive(Clone)]
struct Change {
    old: Range<usize>,
    new: Range<usize>,
}

struct Matcher<'a> {
    old: &'a [&'a str],
    new: &'a [&'a str],
    /// The old lines that may start a common block, in order: those that the new text has, and that are not popular.
    common: Vec<Common>,
    /// The places of each distinct line in the new text, in order.
    places: Vec<Vec<usize>>,
    steps: usize,
    /// The common blocks, in order.
    blocks: Vec<Block>,
}

/// A line of the old text that the new one has, too.
struct Common {
    old: usize,
    /// The index of its places.
    places: usize,
}

impl<'a> Matcher<'a> {
    fn new(old: &'a [&'a str], new: &'a [&'a str]) -> Matcher<'a> {
        let mut known: HashMap<&str, usize> = HashMap::with_capacity(new.len());
        let mut places: Vec<Vec<usize>> = Vec::new();
        for (at, line) in new.iter().enumerate() {
            let index = *known.entry(line).or_insert(places.len());
            match places.get_mut(index) {
                Some(places) => places.push(at),
                None => places.push(vec![at]),
            }
        }
        let most = if new.len() >= POPULAR_FROM { new.len() / 100 + 1 } else { usize::MAX };
        let is_popular = |index: &usize| places.get(*index).is_some_and(|places| places.len() > most);
        let place = |line| known.get(line).copied().filter(|index| !is_popular(index));
        let common = old.iter().enumerate();
        let common = common.filter_map(|(old, line)| Some(Common { old, places: place(line)? })).collect();
        Matcher { old, new, common, places, steps: 0, blocks: Vec::new() }
    }

    /// Finds the common blocks of two ranges.
    fn find(&mut self, old: Range<usize>, new: Range<usize>) {
        // A stack instead of recursion: the ranges may be as many as the lines. The range before a block is done first.
        let mut open = vec![Work::Ranges(old, new)];
        while let Some(work) = open.pop() {
            match work {
                Work::Block(block) => self.blocks.push(block),
                Work::Ranges(old, new) => {
                    let block = self.longest(old.clone(), new.clone());
                    if block.len > 0 {
                        let (old_end, new_end) = (block.old + block.len, block.new + block.len);
                        let before = Work::Ranges(old.start..block.old, new.start..block.new);
                        open.push(Work::Ranges(old_end..old.end, new_end..new.end));
                        open.push(Work::Block(block));
                        open.push(before);
                    }
                }
            }
        }
    }

    /// The longest common block of two ranges; of several, the first one in the old text, and of these the first one in
    /// the new text.
    fn longest(&mut self, old: Range<usize>, new: Range<usize>) -> Block {
        let mut best = Block { old: old.start, new: new.start, len: 0 };
        // The lengths of the blocks that end with the last old line, by the place of their last new line.
        let mut lengths: Vec<(usize, usize)> = Vec::new();
        let mut next = Vec::new();
        let mut last = None;
        let first = self.common.partition_point(|line| line.old < old.start);
        for &Common { old: at, places } in
            self.common.iter().skip(first).take_while(|line| line.old < old.end)
        {
            if !step(&mut self.steps) {
                return best;
            }
            if last.is_none_or(|last| last + 1 < at) {
                lengths.clear();
            }
            last = Some(at);
            next.clear();
            let places = self.places.get(places).map(Vec::as_slice).unwrap_or_default();
            let first = places.partition_point(|place| *place < new.start);
            let mut previous = lengths.iter().peekable();
            for &place in places.iter().skip(first).take_while(|place| **place < new.end) {
                if !step(&mut self.steps) {
                    return best;
                }
                while previous.next_if(|(end, _)| end + 1 < place).is_some() {}
                let len = previous.peek().filter(|(end, _)| end + 1 == place).map_or(1, |(_, len)| len + 1);
                next.push((place, len));
                if len > best.len {
                    best = Block { old: at + 1 - len, new: place + 1 - len, len };
                }
            }
            mem::swap(&mut lengths, &mut next);
        }
        // Popular lines extend a block.
        while best.old > old.start && best.new > new.start && self.is_equal(best.old - 1, best.new - 1) {
            best = Block { old: best.old - 1, new: best.new - 1, len: best.len + 1 };
        }
        while best.old + best.len < old.end
            && best.new + best.len < new.end
            && self.is_equal(best.old + best.len, best.new + best.len)
        {
            best.len += 1;
        }
        best
    }

    fn is_equal(&self, old: usize, new: usize) -> bool {
        self.old.get(old) == self.new.get(new)
    }
}

/// Takes a step, unless the work is at its bound.
fn step(steps: &mut usize) -> bool {
    let may_go_on = *steps < MAX_STEPS;
    *steps += usize::from(may_go_on);
    may_go_on
}

enum Work {
    Ranges(Range<usize>, Range<usize>),
    Block(Block),
}

/// The changes between the common blocks of two texts, whose numbers of lines are given.
fn changes(blocks: Vec<Block>, old_len: usize, new_len: usize) -> Vec<Change> {
    let mut changes = Vec::new();
    let (mut old, mut new) = (0, 0);
    let end = Block { old: old_len, new: new_len, len: 0 };
    for block in blocks.into_iter().chain([end]) {
        if block.old > old || block.new > new {
            changes.push(Change { old: old..block.old, new: new..block.new });
        }
        (old, new) = (block.old + block.len, block.new + block.len);
    }
    changes
}

/// Groups changes with at most twice the context between them.
fn hunks(changes: &[Change]) -> Vec<Vec<Change>> {
    let mut hunks: Vec<Vec<Change>> = Vec::new();
    for change in changes {
        match hunks.last_mut() {
            Some(hunk) if hunk.last().is_some_and(|last| change.old.start - last.old.end <= 2 * CONTEXT) => {
                hunk.push(change.clone());
            }
            _ => hunks.push(vec![change.clone()]),
        }
    }
    hunks
}

fn write_hunk(text: &mut String, hunk: &[Change], old: &[&str], new: &[&str]) {
    let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { return };
    let lead = first.old.start.min(CONTEXT);
    let trail = (old.len() - last.old.end).min(CONTEXT);
    let old_range = first.old.start - lead..last.old.end + trail;
    let new_range = first.new.start - lead..last.new.end + trail;
    text.push_str(&format!("@@ -{} +{} @@\n", numbers(&old_range), numbers(&new_range)));
    let mut write = |mark: char, lines: &[&str], range: Range<usize>| {
        for line in lines.get(range).into_iter().flatten() {
            text.push(mark);
            text.push_str(line);
            text.push('\n');
        }
    };
    let mut at = old_range.start;
    for change in hunk {
        write(' ', old, at..change.old.start);
        write('-', old, change.old.clone());
        write('+', new, change.new.clone());
        at = change.old.end;
    }
    write(' ', old, at..old_range.end);
}

/// The first line and the number of lines of a range.
fn numbers(range: &Range<usize>) -> String {
    match range.len() {
        0 => format!("{},0", range.start),
        1 => format!("{}", range.start + 1),
        len => format!("{},{len}", range.start + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(lines: impl IntoIterator<Item = String>) -> String {
        lines.into_iter().map(|line| line + "\n").collect()
    }

    #[test]
    fn changes_have_context_and_near_ones_are_joined() {
        let old = lines((1..=20).map(|at| at.to_string()));
        let new = old.replace("\n5\n", "\nfive\n").replace("11\n", "").replace("20\n", "20\n21\n");
        assert_eq!(
            unified(&old, &new),
            "@@ -2,13 +2,12 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n 9\n 10\n-11\n 12\n 13\n 14\n@@ -18,3 +17,4 @@\n \
             18\n 19\n 20\n+21\n"
        );
        assert_eq!(unified(&old, &old), "");
        assert_eq!(unified("", "a\n"), "@@ -0,0 +1 @@\n+a\n");
        assert_eq!(unified("a\n", ""), "@@ -1 +0,0 @@\n-a\n");
    }

    #[test]
    fn popular_lines_do_not_start_a_block() {
        // Without popular lines the common block would be the longer run of equal ones.
        let run = |count: usize| (0..count).map(|_| "x".to_owned());
        let old = lines(run(30).chain(["unique".to_owned()]));
        let new = lines(["unique".to_owned()].into_iter().chain(run(250)));
        let diff = unified(&old, &new);
        assert!(diff.starts_with("@@ -1,31 +1,251 @@\n-x\n"), "{diff}");
        assert!(diff.contains("-x\n unique\n+x\n"), "{diff}");
    }

    #[test]
    fn work_is_bounded() {
        let steps = |old: Vec<String>, new: Vec<String>| {
            let (old, new): (Vec<&str>, Vec<&str>) =
                (old.iter().map(String::as_str).collect(), new.iter().map(String::as_str).collect());
            let mut matcher = Matcher::new(&old, &new);
            matcher.find(0..old.len(), 0..new.len());
            matcher.steps
        };
        // Each line occurs as often as it may without being popular.
        let text = |factor: usize| (0..100_000).map(|at| (at * factor % 101).to_string()).collect();
        assert_eq!(steps(text(1), text(7)), MAX_STEPS);
        // Every second line is common, so that there are as many blocks to find as lines to look at for each.
        let text = |mark: &str| {
            (0..100_000).map(|at| if at % 2 == 0 { at.to_string() } else { format!("{mark}{at}") }).collect()
        };
        assert_eq!(steps(text("a"), text("b")), MAX_STEPS);
        assert!(steps(vec!["a".to_owned()], vec!["a".to_owned()]) < 10);
        // Lines that only one text has are not looked at for each block.
        let text = |mark: &str| {
            (0..100_000)
                .map(|at| if at % 100 == 0 { at.to_string() } else { format!("{mark}{at}") })
                .collect()
        };
        assert_eq!(steps(text("a"), text("b")), 1000 * 1001);
    }
}
