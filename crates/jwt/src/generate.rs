//! Generates RSA keys, which `ring` can use but not generate.

use crate::der;
use crypto_bigint::{NonZero, U1024, U2048};
use crypto_primes::{Flavor, random_prime};
use rand::RngCore;
use rand_core::{TryCryptoRng, TryRng};
use std::convert::Infallible;
use zeroize::Zeroizing;

/// The common public exponent.
const EXPONENT: u64 = 65_537;

/// A private key of two primes of 1024 bits, in PKCS#1 form. `ring` checks the key again when it reads it.
pub(crate) fn rsa_2048() -> Zeroizing<Vec<u8>> {
    loop {
        let mut random = Random(rand::rng());
        let first: U1024 = random_prime(&mut random, Flavor::Any, 1024);
        let second: U1024 = random_prime(&mut random, Flavor::Any, 1024);
        if let Some(key) = of_primes(first.max(second), first.min(second)) {
            return key;
        }
    }
}

/// The key of two primes; `None` when they do not make a key of 2048 bits with the common exponent.
fn of_primes(p: U1024, q: U1024) -> Option<Zeroizing<Vec<u8>>> {
    let modulus: U2048 = p.concatenating_mul(&q);
    if p == q || modulus.bits() != 2048 {
        return None;
    }
    let one = U1024::ONE;
    let (p_1, q_1) = (p.wrapping_sub(&one), q.wrapping_sub(&one));
    let totient: U2048 = p_1.concatenating_mul(&q_1);
    let totient = Option::<NonZero<U2048>>::from(NonZero::new(totient))?;
    let exponent = U2048::from_u64(EXPONENT);
    let private: U2048 = Option::from(exponent.invert_mod(&totient))?;
    let reduced = |modulus: U1024| -> Option<U1024> {
        let modulus = Option::<NonZero<U2048>>::from(NonZero::new(modulus.resize::<{ U2048::LIMBS }>()))?;
        Some(private.rem_vartime(&modulus).resize::<{ U1024::LIMBS }>())
    };
    let coefficient: U1024 = Option::from(q.invert_mod(&Option::<NonZero<U1024>>::from(NonZero::new(p))?))?;
    let number = |bytes: &[u8]| Zeroizing::new(der::unsigned(bytes));
    let numbers = [
        number(&[0]),
        number(modulus.to_be_bytes().as_ref()),
        number(&EXPONENT.to_be_bytes()),
        number(private.to_be_bytes().as_ref()),
        number(p.to_be_bytes().as_ref()),
        number(q.to_be_bytes().as_ref()),
        number(reduced(p_1)?.to_be_bytes().as_ref()),
        number(reduced(q_1)?.to_be_bytes().as_ref()),
        number(coefficient.to_be_bytes().as_ref()),
    ];
    let parts: Vec<&[u8]> = numbers.iter().map(|number| number.as_slice()).collect();
    Some(Zeroizing::new(der::value(der::SEQUENCE, &parts)))
}

/// A cryptographic generator seeded by the operating system, with the traits of the prime library.
struct Random(rand::rngs::ThreadRng);

impl TryRng for Random {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.0.next_u32())
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.0.next_u64())
    }

    fn try_fill_bytes(&mut self, destination: &mut [u8]) -> Result<(), Infallible> {
        self.0.fill_bytes(destination);
        Ok(())
    }
}

impl TryCryptoRng for Random {}
