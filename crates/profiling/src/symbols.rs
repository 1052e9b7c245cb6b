//! The names of the functions of this process, from the symbol tables of its binary and libraries.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::FileExt,
};

/// The largest section of a file that is read, in bytes.
const MAX_SECTION: u64 = 256 << 20;
/// The most sections or segments of a file.
const MAX_HEADERS: u16 = 4096;

/// A part of a file that is mapped to be executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) offset: u64,
    pub(crate) path: String,
    pub(crate) has_symbols: bool,
}

/// The functions of the process, as the files say that it has mapped.
pub struct Symbols {
    mappings: Vec<Mapping>,
    /// By address, not overlapping unless the file says so.
    functions: Vec<Function>,
    names: Vec<u8>,
}

struct Function {
    start: usize,
    end: usize,
    /// The place of the name among the names.
    name: usize,
}

impl Symbols {
    /// Reads the symbols. Files that cannot be read, or have none, contribute nothing.
    pub fn of_this_process() -> Symbols {
        let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let mappings: Vec<Mapping> = maps.lines().filter_map(parse_mapping).collect();
        let mut symbols = Symbols { mappings, functions: Vec::new(), names: Vec::new() };
        let mut paths: Vec<String> = symbols.mappings.iter().map(|mapping| mapping.path.clone()).collect();
        paths.dedup();
        for path in paths {
            let has_symbols = symbols.add(&path).unwrap_or(false);
            for mapping in symbols.mappings.iter_mut().filter(|mapping| mapping.path == path) {
                mapping.has_symbols = has_symbols;
            }
        }
        symbols.functions.sort_by_key(|function| function.start);
        symbols
    }

    /// The mangled name of the function at an address.
    pub fn name(&self, address: usize) -> Option<&str> {
        let behind = self.functions.partition_point(|function| function.start <= address);
        let function = self.functions.get(behind.checked_sub(1)?)?;
        let name = self.names.get(function.name..).filter(|_| address < function.end)?;
        std::str::from_utf8(name.split(|byte| *byte == 0).next()?).ok()
    }

    pub(crate) fn mappings(&self) -> &[Mapping] {
        &self.mappings
    }

    /// The place of the mapping of an address.
    pub(crate) fn mapping(&self, address: usize) -> Option<usize> {
        self.mappings.iter().position(|mapping| (mapping.start..mapping.end).contains(&address))
    }

    /// Adds the functions of a file; tells whether it has any.
    fn add(&mut self, path: &str) -> io::Result<bool> {
        // The binary may have been replaced meanwhile.
        let is_binary = fs::read_link("/proc/self/exe").is_ok_and(|exe| exe.as_os_str() == path);
        let file = File::open(if is_binary { "/proc/self/exe" } else { path })?;
        let elf = Elf::read(&file)?;
        let Some((symbols, names)) = elf.symbol_table(&file)? else { return Ok(false) };
        let base = self.names.len();
        let before = self.functions.len();
        for entry in symbols.chunks_exact(24) {
            let kind = entry.get(4).copied().unwrap_or_default() & 0xf;
            let (start, size) = (u64_at(entry, 8), u64_at(entry, 16));
            // Functions only, and those that the file has.
            if !matches!(kind, 2 | 10) || start == 0 || size == 0 {
                continue;
            }
            let Some(start) = elf.file_offset(start).and_then(|offset| self.address(path, offset)) else {
                continue;
            };
            let size = usize::try_from(size).unwrap_or_default();
            let name = base + usize::try_from(u32_at(entry, 0)).unwrap_or_default();
            self.functions.push(Function { start, end: start.saturating_add(size), name });
        }
        self.names.extend(names);
        Ok(self.functions.len() > before)
    }

    /// The address of a byte of a mapped file.
    fn address(&self, path: &str, offset: u64) -> Option<usize> {
        let of_file = self.mappings.iter().filter(|mapping| mapping.path == path);
        of_file.into_iter().find_map(|mapping| {
            let inside = usize::try_from(offset.checked_sub(mapping.offset)?).ok()?;
            let address = mapping.start.checked_add(inside)?;
            (address < mapping.end).then_some(address)
        })
    }
}

/// A line of `/proc/self/maps`; `None` for memory that is not executed or no file.
fn parse_mapping(line: &str) -> Option<Mapping> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let permissions = fields.next()?;
    let offset = fields.next()?;
    let path = fields.nth(2)?;
    (permissions.contains('x') && path.starts_with('/')).then_some(())?;
    Some(Mapping {
        start: usize::from_str_radix(start, 16).ok()?,
        end: usize::from_str_radix(end, 16).ok()?,
        offset: u64::from_str_radix(offset, 16).ok()?,
        path: path.to_owned(),
        has_symbols: false,
    })
}

/// The headers of an ELF file of 64 bits, in the byte order of this machine.
struct Elf {
    /// Type, file offset, address and size of each segment.
    segments: Vec<[u64; 4]>,
    /// Type, file offset, size and linked section of each section.
    sections: Vec<[u64; 4]>,
}

impl Elf {
    fn read(file: &File) -> io::Result<Elf> {
        let mut header = [0; 64];
        file.read_exact_at(&mut header, 0)?;
        if !header.starts_with(b"\x7fELF\x02") {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let (at, count) = (u64_at(&header, 32), u16_at(&header, 56).min(MAX_HEADERS));
        let segments = read_at(file, at, u64::from(count) * 56)?;
        let (at, count) = (u64_at(&header, 40), u16_at(&header, 60).min(MAX_HEADERS));
        let sections = read_at(file, at, u64::from(count) * 64)?;
        let segment = |bytes: &[u8]| {
            [u64::from(u32_at(bytes, 0)), u64_at(bytes, 8), u64_at(bytes, 16), u64_at(bytes, 32)]
        };
        let section = |bytes: &[u8]| {
            [u64::from(u32_at(bytes, 4)), u64_at(bytes, 24), u64_at(bytes, 32), u64::from(u32_at(bytes, 40))]
        };
        Ok(Elf {
            segments: segments.chunks_exact(56).map(segment).collect(),
            sections: sections.chunks_exact(64).map(section).collect(),
        })
    }

    /// The symbols and their names: the full table, or else the one of the dynamic linker.
    fn symbol_table(&self, file: &File) -> io::Result<Option<(Vec<u8>, Vec<u8>)>> {
        let of_kind = |wanted: u64| self.sections.iter().find(|[kind, ..]| *kind == wanted);
        let Some([_, at, size, names]) = of_kind(2).or_else(|| of_kind(11)) else { return Ok(None) };
        let names = usize::try_from(*names).ok().and_then(|index| self.sections.get(index));
        let Some([_, names_at, names_size, _]) = names else { return Ok(None) };
        Ok(Some((read_at(file, *at, *size)?, read_at(file, *names_at, *names_size)?)))
    }

    /// The place in the file of what is loaded at an address.
    fn file_offset(&self, address: u64) -> Option<u64> {
        let loaded = self.segments.iter().filter(|[kind, ..]| *kind == 1);
        loaded.into_iter().find_map(|[_, offset, start, size]| {
            let inside = address.checked_sub(*start).filter(|inside| inside < size)?;
            offset.checked_add(inside)
        })
    }
}

fn read_at(file: &File, at: u64, size: u64) -> io::Result<Vec<u8>> {
    if size > MAX_SECTION {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; usize::try_from(size).unwrap_or_default()];
    file.read_exact_at(&mut bytes, at)?;
    Ok(bytes)
}

fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..at + N).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; N])
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes(array_at(bytes, at))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(array_at(bytes, at))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(array_at(bytes, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    fn a_function_of_this_test() -> u32 {
        std::hint::black_box(1)
    }

    #[test]
    fn functions_are_named() {
        assert_eq!(a_function_of_this_test(), 1);
        let symbols = Symbols::of_this_process();
        let address = a_function_of_this_test as fn() -> u32 as usize;
        assert!(symbols.name(address).unwrap().contains("a_function_of_this_test"));
        assert!(symbols.mapping(address).is_some());
        assert_eq!(symbols.name(1), None);
    }
}
