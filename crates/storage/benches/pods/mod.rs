//! Values as the server writes them: pods of a deployment, each with its own name and uid.
//!
//! `pod.pb` is one pod, 3.6 KB, as it was stored after a controller had created it (protobuf, with defaults and
//! managed fields). The text that differs from pod to pod, or between deployments, is replaced by other text of the
//! same length, so every value is a valid pod and no two are equal.

use bytes::Bytes;

const POD: &[u8] = include_bytes!("pod.pb");
const OF_A_POD: [&str; 3] = ["a1dd0abb-ca1d-4a2a-84a1-30eb31283331", "zq4xk", "h7d2m"];
const OF_A_DEPLOYMENT: [&str; 4] = [
    "6d8f9c7b54",
    "b7c1e2d4-5f60-4a8b-9c3d-1e2f3a4b5c6d",
    "3f1b0c8e5d7a492b6e8f10d3c5a7b9e2f4d6081a3c5e7092b4d6f8a1c3e5079b",
    "9d4c1f7ab2e85306c7d9e1f0a3b5c8d2e4f60718293a4b5c6d7e8f9012a3b4c5",
];
const PODS_OF_A_DEPLOYMENT: u64 = 10;

/// Generates the pods, by number.
pub(crate) struct Pods {
    /// The places to replace in the template: the number of the string, and the offset.
    places: Vec<(usize, usize)>,
}

impl Pods {
    pub(crate) fn new() -> Pods {
        let mut places = Vec::new();
        for (number, text) in OF_A_POD.into_iter().chain(OF_A_DEPLOYMENT).enumerate() {
            let before = places.len();
            let found = POD.windows(text.len()).enumerate().filter(|(_, window)| *window == text.as_bytes());
            places.extend(found.map(|(offset, _)| (number, offset)));
            assert!(places.len() > before, "{text} is in the template");
        }
        Pods { places }
    }

    /// The pod with a number.
    pub(crate) fn pod(&self, number: u64) -> Bytes {
        let mut pod = POD.to_vec();
        for (text, offset) in &self.places {
            let (length, of) = match OF_A_POD.get(*text) {
                Some(text) => (text.len(), number),
                None => (
                    OF_A_DEPLOYMENT.get(*text - OF_A_POD.len()).map_or(0, |text| text.len()),
                    number / PODS_OF_A_DEPLOYMENT,
                ),
            };
            let mut random = Random(of << 8 | *text as u64);
            for byte in pod.iter_mut().skip(*offset).take(length).filter(|byte| **byte != b'-') {
                *byte = random.hex_digit();
            }
        }
        Bytes::from(pod)
    }
}

/// splitmix64: random enough to be incompressible.
struct Random(u64);

impl Random {
    fn hex_digit(&mut self) -> u8 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let digit = (mixed >> 60) as u8;
        if digit < 10 { b'0' + digit } else { b'a' + digit - 10 }
    }
}
