//! Generates object names
//! (<https://kubernetes.io/docs/reference/using-api/api-concepts/#generated-values>).

use rand::Rng;

const SUFFIX_LENGTH: usize = 5;
const MAX_BASE_LENGTH: usize = 63 - SUFFIX_LENGTH;
/// Letters and digits without vowels and without characters that look alike.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Generates a name from `metadata.generateName`: the base, truncated to leave room, and five random characters.
pub fn generate_name(base: &str) -> String {
    let mut end = base.len().min(MAX_BASE_LENGTH);
    while !base.is_char_boundary(end) {
        end -= 1;
    }
    let mut name = base.get(..end).unwrap_or_default().to_owned();
    let mut random = rand::rng();
    for _ in 0..SUFFIX_LENGTH {
        let at = random.random_range(0..ALPHABET.len());
        name.push(char::from(ALPHABET.get(at).copied().unwrap_or(b'x')));
    }
    name
}

#[cfg(test)]
mod tests {
    use super::generate_name;

    #[test]
    fn names_fit_a_label() {
        assert_eq!(generate_name("a-").len(), 7);
        assert_eq!(generate_name(&"x".repeat(300)).len(), 63);
        assert_ne!(generate_name("a-"), generate_name("a-"));
    }
}
