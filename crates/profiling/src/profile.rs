//! The encoding of profiles (<https://github.com/google/pprof/blob/main/proto/profile.proto>).

use crate::symbols::{Mapping, Symbols};
use flate2::{Compression, write::GzEncoder};
use prost::Message;
use std::{
    collections::HashMap,
    io::Write as _,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

mod message {
    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct Profile {
        #[prost(message, repeated, tag = "1")]
        pub(crate) sample_type: Vec<ValueType>,
        #[prost(message, repeated, tag = "2")]
        pub(crate) sample: Vec<Sample>,
        #[prost(message, repeated, tag = "3")]
        pub(crate) mapping: Vec<Mapping>,
        #[prost(message, repeated, tag = "4")]
        pub(crate) location: Vec<Location>,
        #[prost(message, repeated, tag = "5")]
        pub(crate) function: Vec<Function>,
        #[prost(string, repeated, tag = "6")]
        pub(crate) string_table: Vec<String>,
        #[prost(int64, tag = "9")]
        pub(crate) time_nanos: i64,
        #[prost(int64, tag = "10")]
        pub(crate) duration_nanos: i64,
        #[prost(message, optional, tag = "11")]
        pub(crate) period_type: Option<ValueType>,
        #[prost(int64, tag = "12")]
        pub(crate) period: i64,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct ValueType {
        #[prost(int64, tag = "1")]
        pub(crate) kind: i64,
        #[prost(int64, tag = "2")]
        pub(crate) unit: i64,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct Sample {
        #[prost(uint64, repeated, tag = "1")]
        pub(crate) location_id: Vec<u64>,
        #[prost(int64, repeated, tag = "2")]
        pub(crate) value: Vec<i64>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct Mapping {
        #[prost(uint64, tag = "1")]
        pub(crate) id: u64,
        #[prost(uint64, tag = "2")]
        pub(crate) memory_start: u64,
        #[prost(uint64, tag = "3")]
        pub(crate) memory_limit: u64,
        #[prost(uint64, tag = "4")]
        pub(crate) file_offset: u64,
        #[prost(int64, tag = "5")]
        pub(crate) filename: i64,
        #[prost(bool, tag = "7")]
        pub(crate) has_functions: bool,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct Location {
        #[prost(uint64, tag = "1")]
        pub(crate) id: u64,
        #[prost(uint64, tag = "2")]
        pub(crate) mapping_id: u64,
        #[prost(uint64, tag = "3")]
        pub(crate) address: u64,
        #[prost(message, repeated, tag = "4")]
        pub(crate) line: Vec<Line>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct Line {
        #[prost(uint64, tag = "1")]
        pub(crate) function_id: u64,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct Function {
        #[prost(uint64, tag = "1")]
        pub(crate) id: u64,
        #[prost(int64, tag = "2")]
        pub(crate) name: i64,
        #[prost(int64, tag = "3")]
        pub(crate) system_name: i64,
    }
}

/// The kind and unit of a value of a sample.
pub(crate) struct ValueType {
    kind: &'static str,
    unit: &'static str,
}

impl ValueType {
    pub(crate) fn new(kind: &'static str, unit: &'static str) -> ValueType {
        ValueType { kind, unit }
    }
}

/// Collects samples.
pub(crate) struct Builder {
    profile: message::Profile,
    strings: HashMap<String, i64>,
    locations: HashMap<usize, u64>,
    functions: HashMap<String, u64>,
    symbols: Symbols,
}

impl Builder {
    pub(crate) fn new(types: &[ValueType], period_type: &ValueType, period: i64) -> Builder {
        let mut builder = Builder {
            profile: message::Profile { period, ..message::Profile::default() },
            strings: HashMap::new(),
            locations: HashMap::new(),
            functions: HashMap::new(),
            symbols: Symbols::of_this_process(),
        };
        // The first string is the empty one.
        builder.string("");
        let types = types.iter().map(|kind| builder.value_type(kind)).collect();
        builder.profile.sample_type = types;
        builder.profile.period_type = Some(builder.value_type(period_type));
        for (index, mapping) in builder.symbols.mappings().to_vec().iter().enumerate() {
            let mapping = builder.mapping(index, mapping);
            builder.profile.mapping.push(mapping);
        }
        builder
    }

    /// When the profile was taken, and how long that lasted.
    pub(crate) fn set_time(&mut self, started: SystemTime, duration: Option<Duration>) {
        self.profile.time_nanos = nanoseconds(started.duration_since(UNIX_EPOCH).unwrap_or_default());
        self.profile.duration_nanos = duration.map(nanoseconds).unwrap_or_default();
    }

    /// Adds a stack, innermost frame first.
    pub(crate) fn add(&mut self, stack: &[usize], values: &[i64]) {
        let location_id = stack.iter().map(|address| self.location(*address)).collect();
        self.profile.sample.push(message::Sample { location_id, value: values.to_vec() });
    }

    /// The profile, compressed as pprof wants it.
    pub(crate) fn encode(self) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        let written = encoder.write_all(&self.profile.encode_to_vec());
        // Writing to memory does not fail.
        written.and_then(|()| encoder.finish()).unwrap_or_default()
    }

    fn string(&mut self, text: &str) -> i64 {
        if let Some(index) = self.strings.get(text) {
            return *index;
        }
        let index = i64::try_from(self.profile.string_table.len()).unwrap_or_default();
        self.profile.string_table.push(text.to_owned());
        self.strings.insert(text.to_owned(), index);
        index
    }

    fn value_type(&mut self, value_type: &ValueType) -> message::ValueType {
        message::ValueType { kind: self.string(value_type.kind), unit: self.string(value_type.unit) }
    }

    fn mapping(&mut self, index: usize, mapping: &Mapping) -> message::Mapping {
        message::Mapping {
            id: index as u64 + 1,
            memory_start: mapping.start as u64,
            memory_limit: mapping.end as u64,
            file_offset: mapping.offset,
            filename: self.string(&mapping.path),
            has_functions: mapping.has_symbols,
        }
    }

    fn location(&mut self, address: usize) -> u64 {
        if let Some(id) = self.locations.get(&address) {
            return *id;
        }
        let id = self.locations.len() as u64 + 1;
        self.locations.insert(address, id);
        let name = self.symbols.name(address).map(str::to_owned);
        let line = name.map(|name| message::Line { function_id: self.function(&name) });
        let mapping = self.symbols.mapping(address).map_or(0, |index| index as u64 + 1);
        self.profile.location.push(message::Location {
            id,
            mapping_id: mapping,
            address: address as u64,
            line: line.into_iter().collect(),
        });
        id
    }

    /// The function of a mangled name; pprof demangles names that equal those of the system.
    fn function(&mut self, name: &str) -> u64 {
        if let Some(id) = self.functions.get(name) {
            return *id;
        }
        let id = self.functions.len() as u64 + 1;
        self.functions.insert(name.to_owned(), id);
        let name = self.string(name);
        self.profile.function.push(message::Function { id, name, system_name: name });
        id
    }
}

fn nanoseconds(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::io::Read;

    pub(crate) struct Decoded(message::Profile);

    pub(crate) fn decode(bytes: &[u8]) -> Decoded {
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(bytes).read_to_end(&mut plain).unwrap();
        Decoded(message::Profile::decode(plain.as_slice()).unwrap())
    }

    impl Decoded {
        fn text(&self, index: i64) -> &str {
            &self.0.string_table[usize::try_from(index).unwrap()]
        }

        fn names_of(&self, location: u64) -> Vec<&str> {
            let location = self.0.location.iter().find(|known| known.id == location).unwrap();
            let function = |id: u64| self.0.function.iter().find(|known| known.id == id).unwrap();
            location.line.iter().map(|line| self.text(function(line.function_id).name)).collect()
        }

        /// The names of all functions.
        pub(crate) fn names(&self) -> Vec<&str> {
            self.0.function.iter().map(|function| self.text(function.name)).collect()
        }

        /// The values of the samples with a function whose mangled name has this part.
        pub(crate) fn samples_with(&self, part: &str) -> Vec<Vec<i64>> {
            let has = |sample: &&message::Sample| {
                let mut locations = sample.location_id.iter();
                locations.any(|id| self.names_of(*id).iter().any(|name| name.contains(part)))
            };
            self.0.sample.iter().filter(has).map(|sample| sample.value.clone()).collect()
        }
    }
}
