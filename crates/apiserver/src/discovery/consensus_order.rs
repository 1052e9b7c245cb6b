//! Joins several orders of names into one.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, BinaryHeap, HashMap, HashSet},
};

/// The names of all lists, each once. Names keep the order that they have in the lists; names that no list puts in an order
/// are sorted. Lists that contradict each other are all sorted by name. The first list that has every name is the result
/// itself.
pub(super) fn consensus_order<'a>(lists: &[Vec<&'a str>]) -> Vec<&'a str> {
    let names: HashSet<&str> = lists.iter().flatten().copied().collect();
    let is_complete = |list: &&Vec<&str>| {
        list.len() == names.len() && list.iter().collect::<HashSet<_>>().len() == names.len()
    };
    if let Some(complete) = lists.iter().find(is_complete) {
        return complete.clone();
    }
    let mut followers: HashMap<&str, HashSet<&str>> = HashMap::with_capacity(names.len());
    let mut predecessors: HashMap<&str, usize> = HashMap::with_capacity(names.len());
    for pair in lists.iter().flat_map(|list| list.windows(2)) {
        if let [before, after] = pair
            && followers.entry(before).or_default().insert(after)
        {
            *predecessors.entry(after).or_default() += 1;
        }
    }
    let is_first = |name: &&&str| !predecessors.contains_key(**name);
    let mut ready: BinaryHeap<Reverse<&str>> =
        names.iter().filter(is_first).map(|name| Reverse(*name)).collect();
    let mut order: Vec<&'a str> = Vec::with_capacity(names.len());
    while let Some(Reverse(name)) = ready.pop() {
        order.push(name);
        for follower in followers.remove(name).unwrap_or_default() {
            let Some(left) = predecessors.get_mut(follower) else { continue };
            *left -= 1;
            if *left == 0 {
                ready.push(Reverse(follower));
            }
        }
    }
    match order.len() == names.len() {
        true => order,
        false => names.into_iter().collect::<BTreeSet<_>>().into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_the_order_of_the_lists() {
        let check = |lists: &[&str], expected: &str| {
            let lists: Vec<Vec<&str>> = lists.iter().map(|list| list.split_whitespace().collect()).collect();
            assert_eq!(consensus_order(&lists).join(" "), expected, "{lists:?}");
        };
        check(&[], "");
        check(&["", ""], "");
        check(&["b a"], "b a");
        check(&["a b c", "b c"], "a b c");
        check(&["b c", "z b c a"], "z b c a");
        check(&["a c", "b c"], "a b c");
        check(&["x a", "x b", "b y"], "x a b y");
        // A complete list is the order, even if another one contradicts it.
        check(&["a b", "b a"], "a b");
        // A contradiction without a complete list.
        check(&["z b a", "a b"], "z b a");
        check(&["z b a", "a b c"], "a b c z");
        check(&["a a", "b"], "a b");
    }
}
