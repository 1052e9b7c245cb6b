//! Runs the fuzz targets of tokens on fixed mutations of tokens and claims.

#[path = "../../../../fuzz/src/random.rs"]
mod random;
#[path = "../../../../fuzz/src/tokens.rs"]
mod tokens;

use random::Random;

const ROUNDS: usize = 4_000;

const TOKENS: &[&str] = &[
    "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJtZSIsImF1ZCI6WyJvd24iXX0.AAAA",
    "eyJhbGciOiJub25lIn0.eyJpc3MiOiJtZSJ9.",
    "abcdef.0123456789abcdef",
    "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n-----END PUBLIC KEY-----\n",
    "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIA==\n-----END EC PRIVATE KEY-----\n",
];

const CLAIMS: &[&str] = &[
    r#"{"iss":"me","aud":["own"],"kubernetes.io":{"namespace":"default","serviceaccount":{"name":"bot","uid":"1"}}}"#,
    r#"{"iss":"me","aud":"own","exp":4000000000,"nbf":1,"iat":1,"jti":"x","kubernetes.io":{"namespace":"default","serviceaccount":{"name":"bot","uid":"1"},"warnafter":5,"node":{"name":"n"},"pod":null}}"#,
    r#"{"iss":"me","kubernetes.io":{"namespace":"default","serviceaccount":{"name":"bot","uid":"1"},"secret":{"name":"s","uid":"2"}}}"#,
    r#"{"iss":"kubernetes/serviceaccount","sub":"system:serviceaccount:default:bot","kubernetes.io/serviceaccount/namespace":"default","kubernetes.io/serviceaccount/secret.name":"s","kubernetes.io/serviceaccount/service-account.name":"bot","kubernetes.io/serviceaccount/service-account.uid":"1"}"#,
];

impl Random {
    fn mutated(&mut self, seeds: &[&str]) -> Vec<u8> {
        let mut data = seeds[self.below(seeds.len())].as_bytes().to_vec();
        for _ in 0..self.below(4) {
            let at = self.below(data.len() + 1);
            match self.below(5) {
                0 => data.truncate(at),
                1 => data.insert(at, b"{}[]\":,.-_=e0129anull"[self.below(21)]),
                2 if at < data.len() => data[at] ^= 1 << self.below(8),
                3 => drop(data.drain(at..(at + self.below(9)).min(data.len()))),
                _ => {
                    let from = seeds[self.below(seeds.len())].as_bytes();
                    let start = self.below(from.len());
                    let length = self.below(from.len() - start);
                    data.splice(at..at, from[start..start + length].iter().copied());
                }
            }
        }
        data
    }
}

#[test]
fn tokens_and_claims_hold() {
    let mut random = Random::default();
    for _ in 0..ROUNDS {
        tokens::token(&random.mutated(TOKENS));
        tokens::claims(&random.mutated(CLAIMS));
    }
}
