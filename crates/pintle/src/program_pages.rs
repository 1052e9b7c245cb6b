//! Unmaps the pages of the program that only its start needed.

#![expect(
    unsafe_code,
    reason = "neither the program's headers nor advice about its pages have a safe interface"
)]

use std::{
    ffi::{c_int, c_void},
    fs,
    ops::Range,
    ptr, slice,
};

/// Unmaps the pages of the program's code and constants; the kernel maps those again that are used.
///
/// Starting runs most of the code once, and pages that the kernel finds in its cache are mapped sixteen at a time, so
/// that three quarters of the program are resident when it begins to serve. A page costs a minor fault when it is next
/// used: it is still in the page cache, unless the system needed its memory for something else. The call takes a
/// millisecond.
///
/// Data that the program or the dynamic linker writes is not touched. See `madvise(2)`, `MADV_DONTNEED`. Nothing is
/// unmapped in a process that is traced, since a debugger's breakpoints are written into the code, and would be lost.
pub fn unmap_program_pages() {
    if is_traced() {
        return;
    }
    for segment in read_only_segments() {
        // SAFETY: the pages are mapped from the program's file and were never writable, so what is mapped again is what
        // is there now.
        let advised = unsafe {
            libc::madvise(ptr::without_provenance_mut(segment.start), segment.len(), libc::MADV_DONTNEED)
        };
        if advised != 0 {
            tracing::debug!(error = %std::io::Error::last_os_error(), "pages of the program stay mapped");
        }
    }
}

/// Whether a debugger traces the process (`proc_pid_status(5)`, `TracerPid`).
fn is_traced() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
    tracer.is_some_and(|tracer| tracer.trim() != "0")
}

/// The addresses of the program's segments that are loaded without write permission, in whole pages.
fn read_only_segments() -> Vec<Range<usize>> {
    let mut segments: Vec<Range<usize>> = Vec::new();
    // SAFETY: the callback gets a pointer to the list, which outlives the call and which nothing else refers to.
    unsafe {
        libc::dl_iterate_phdr(Some(add_program), (&raw mut segments).cast());
    }
    segments
}

/// Adds the segments of the first object, which is the program itself (`dl_iterate_phdr(3)`).
unsafe extern "C" fn add_program(
    object: *mut libc::dl_phdr_info,
    _size: libc::size_t,
    segments: *mut c_void,
) -> c_int {
    const END: c_int = 1;
    // SAFETY: the linker passes a valid object with so many headers, and the argument of `read_only_segments`.
    let (object, segments) = unsafe { (&*object, &mut *segments.cast::<Vec<Range<usize>>>()) };
    // SAFETY: as above.
    let headers = unsafe { slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into()) };
    let page = rustix::param::page_size();
    for header in headers {
        if header.p_type != libc::PT_LOAD || header.p_flags & libc::PF_W != 0 {
            continue;
        }
        let (Ok(base), Ok(address), Ok(size)) = (
            usize::try_from(object.dlpi_addr),
            usize::try_from(header.p_vaddr),
            usize::try_from(header.p_memsz),
        ) else {
            continue;
        };
        // Whole pages within the segment: one at its edge may also have the beginning of written data.
        let start = (base + address).next_multiple_of(page);
        let end = (base + address + size) / page * page;
        if start < end {
            segments.push(start..end);
        }
    }
    END
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The resident memory that is mapped from files, in kilobytes.
    fn resident_files() -> u64 {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("RssFile:")).unwrap();
        line.trim().strip_suffix("kB").unwrap().trim().parse().unwrap()
    }

    /// Reads a byte of each page, so that all are resident.
    fn touch(segments: &[Range<usize>]) -> u64 {
        let pages = segments.iter().flat_map(|segment| segment.clone().step_by(rustix::param::page_size()));
        // SAFETY: the segments are mapped and readable as long as the program runs.
        pages.map(|page| u64::from(unsafe { ptr::with_exposed_provenance::<u8>(page).read_volatile() })).sum()
    }

    #[test]
    fn unmapped_pages_are_not_resident_and_come_back_unchanged() {
        let segments = read_only_segments();
        let kilobytes = segments.iter().map(|segment| segment.len() as u64 >> 10).sum::<u64>();
        let contents = touch(&segments);
        let before = resident_files();
        assert!(before > kilobytes / 2, "{before} of {kilobytes}");
        unmap_program_pages();
        let after = resident_files();
        assert!(after + kilobytes / 2 < before, "{before}, then {after} of {kilobytes}");
        assert_eq!(touch(&segments), contents);
    }
}
