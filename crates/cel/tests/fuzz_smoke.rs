//! Runs the fuzz target of expressions on a fixed set of mutations of expressions of every kind.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, reason = "tests")]

#[path = "../../../fuzz/src/expressions.rs"]
mod expressions;
#[path = "../../../fuzz/src/random.rs"]
mod random;

use random::Random;

const ROUNDS: usize = 20_000;

const SEEDS: &[&str] = &[
    "self.a > 1 && list.all(x, x.matches('^[a-z]+$')) || has(self.b)",
    "list.map(x, x + 'a').filter(y, y != 'b').sortBy(z, z.size())[0]",
    "self.?c.?d.orValue({'k': [1u, 2u]}) == [b'\\x00', 1.5e3]",
    "list.transformMap(i, v, i > 0, v).transformList(k, v, [k, v]).size()",
    "optional.of(1).optMap(x, x + 1).optFlatMap(y, [y][?0]).hasValue()",
    "'%s %d %.3f'.format([self.c.e, 1, 2.0]).split(' ', 2).join(',')",
    "duration('1h') < timestamp(self.c.e) - timestamp('2019-01-01T00:00:00Z')",
    "quantity('1Mi').add(quantity('1k')).isGreaterThan(quantity('5'))",
    "cidr('10.0.0.0/8').containsIP(ip(list[2])) && ip.isCanonical('::1')",
    "semver('1.2.3').compareTo(semver('v1.3', true)) < 0 ? [] : [[1], []].flatten()",
    "url('https://a.b:80/c?d=e').getQuery()['d'].exists_one(x, x in list)",
    "sets.contains(list, ['a']) // comment\n == !(-1 < 2 - -3 * 4 / 5 % 6)",
    "{?'a': self.?a, 'b': r'''raw\n'''}.exists(k, v, type(v) == int)",
    "format.named('uuid').value().validate(\"\\u00e9\\n\\377\").value()[0]",
];

#[test]
fn expressions_hold() {
    let mut random = Random::default();
    for seed in SEEDS {
        expressions::expression(seed.as_bytes());
    }
    for _ in 0..ROUNDS {
        let mut data = SEEDS[random.below(SEEDS.len())].as_bytes().to_vec();
        for _ in 0..=random.below(4) {
            let at = random.below(data.len() + 1);
            match random.below(6) {
                0 => data.truncate(at),
                1 => data.insert(at, b"()[]{}.,?:!-'\"\\`0xeE \n"[random.below(22)]),
                2 if at < data.len() => data[at] ^= 1 << random.below(7),
                3 => drop(data.drain(at..(at + random.below(9)).min(data.len()))),
                4 => data.insert(at, random.below(256) as u8),
                _ => {
                    let from = SEEDS[random.below(SEEDS.len())].as_bytes();
                    let start = random.below(from.len());
                    let length = random.below(from.len() - start);
                    data.splice(at..at, from[start..start + length].iter().copied());
                }
            }
        }
        expressions::expression(&data);
    }
}
