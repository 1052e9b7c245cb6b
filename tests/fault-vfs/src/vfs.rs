//! The layer itself: a [VFS](https://www.sqlite.org/vfs.html) that becomes SQLite's default one and calls the one that
//! was the default before.
//!
//! The unsafe code is sound for these reasons:
//! - SQLite calls the functions below by the rules of its interface: `file` points to `szOsFile` bytes that we asked
//!   for, aligned to 8, which hold a [`ShimFile`] (of pointers only) and behind it the file of the real
//!   layer. Buffers have the lengths that are passed with them.
//! - [`real_file`] is only called on such files, and its methods are only called while it is open. All of them exist:
//!   a VFS must have those of version 1, and `register` checks that the real one has the memory methods of version 2.
//! - `state` is a box leaked by `open` and dropped by `close`, which SQLite calls once and last. It is used by
//!   shared reference, and everything in it may be used by several threads.
//! - The VFS structure and the methods are statics or leaked, so they outlive every connection.
#![allow(unsafe_code, reason = "the layer is called by C code; see above")]

use crate::{
    disk::{Call, Disk, Effect},
    image::Operation,
};
use rusqlite::ffi;
use std::{
    ffi::{CStr, c_char, c_int, c_void},
    mem::size_of,
    path::Path,
    ptr, slice,
    sync::{Arc, Once, OnceLock},
};

/// An open file in SQLite's memory. The real layer's file follows it.
#[repr(C)]
struct ShimFile {
    base: ffi::sqlite3_file,
    state: *mut FileState,
}

/// The disk of an open file and its name; `None` for files of no [`Disk`].
struct FileState(Option<(Arc<Disk>, String)>);

impl FileState {
    fn fault(&self, call: Call) -> Option<Effect> {
        let (disk, name) = self.0.as_ref()?;
        disk.fault(call, name)
    }

    fn note(&self, operation: impl FnOnce(String) -> Operation) {
        if let Some((disk, name)) = &self.0 {
            disk.note(|| operation(name.clone()));
        }
    }
}

/// The former default VFS, as an address, since a pointer cannot be in a static.
static REAL: OnceLock<usize> = OnceLock::new();

fn real_vfs() -> *mut ffi::sqlite3_vfs {
    REAL.get().map_or(ptr::null_mut(), |address| *address as *mut ffi::sqlite3_vfs)
}

/// Registers the layer as the default VFS of this process, once.
pub(crate) fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| unsafe {
        assert_eq!(ffi::sqlite3_initialize(), ffi::SQLITE_OK);
        let real = ffi::sqlite3_vfs_find(ptr::null());
        assert!(!real.is_null(), "SQLite has no VFS");
        REAL.get_or_init(|| real as usize);
        // All members that do not concern files stay those of the real VFS, including pAppData.
        let mut shim = *real;
        shim.zName = c"pintle-fault".as_ptr();
        shim.szOsFile = (*real).szOsFile + size_of::<ShimFile>() as c_int;
        shim.pNext = ptr::null_mut();
        shim.xOpen = Some(open);
        shim.xDelete = Some(delete);
        let shim = Box::into_raw(Box::new(shim));
        assert_eq!(ffi::sqlite3_vfs_register(shim, 1), ffi::SQLITE_OK);
    });
}

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    // Without the methods of version 3, SQLite does not bypass the layer by mapping files into memory.
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};

unsafe fn real_file(file: *mut ffi::sqlite3_file) -> *mut ffi::sqlite3_file {
    unsafe { file.cast::<ShimFile>().add(1).cast() }
}

unsafe fn state<'file>(file: *mut ffi::sqlite3_file) -> &'file FileState {
    unsafe { &*(*file.cast::<ShimFile>()).state }
}

/// Calls a method of the real file.
macro_rules! pass_on {
    ($file:expr, $method:ident $(, $argument:expr)*) => {{
        let real = real_file($file);
        match (*(*real).pMethods).$method {
            Some(method) => method(real $(, $argument)*),
            None => ffi::SQLITE_IOERR,
        }
    }};
}

unsafe extern "C" fn open(
    _: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    unsafe {
        // Without methods, SQLite does not close the unopened file.
        (*file).pMethods = ptr::null();
        let owner = match name.is_null() {
            true => None,
            false => CStr::from_ptr(name).to_str().ok().and_then(|name| Disk::of(Path::new(name))),
        };
        let state = FileState(owner);
        match state.fault(Call::Open) {
            None => {}
            Some(Effect::IoError | Effect::ReadOnly | Effect::Panic) => return ffi::SQLITE_CANTOPEN,
            Some(Effect::DiskFull | Effect::ShortWrite) => return ffi::SQLITE_FULL,
        }
        if flags & ffi::SQLITE_OPEN_CREATE != 0 {
            state.note(|file| Operation::Create { file });
        }
        let real = real_file(file);
        (*real).pMethods = ptr::null();
        let vfs = real_vfs();
        let Some(real_open) = (*vfs).xOpen else { return ffi::SQLITE_CANTOPEN };
        let code = real_open(vfs, name, real, flags, out_flags);
        if code == ffi::SQLITE_OK {
            (*file.cast::<ShimFile>()).state = Box::into_raw(Box::new(state));
            (*file).pMethods = &raw const METHODS;
        }
        code
    }
}

unsafe extern "C" fn delete(_: *mut ffi::sqlite3_vfs, name: *const c_char, sync_directory: c_int) -> c_int {
    unsafe {
        if let Some((disk, file)) =
            CStr::from_ptr(name).to_str().ok().and_then(|name| Disk::of(Path::new(name)))
        {
            disk.note(|| Operation::Delete { file, synced: sync_directory != 0 });
        }
        let vfs = real_vfs();
        match (*vfs).xDelete {
            Some(real_delete) => real_delete(vfs, name, sync_directory),
            None => ffi::SQLITE_IOERR_DELETE,
        }
    }
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    unsafe {
        let code = pass_on!(file, xClose);
        drop(Box::from_raw((*file.cast::<ShimFile>()).state));
        code
    }
}

unsafe extern "C" fn read(
    file: *mut ffi::sqlite3_file,
    buffer: *mut c_void,
    length: c_int,
    offset: ffi::sqlite3_int64,
) -> c_int {
    unsafe {
        if state(file).fault(Call::Read).is_some() {
            return ffi::SQLITE_IOERR_READ;
        }
        pass_on!(file, xRead, buffer, length, offset)
    }
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    buffer: *const c_void,
    length: c_int,
    offset: ffi::sqlite3_int64,
) -> c_int {
    unsafe {
        let (length, failure) = match state(file).fault(Call::Write) {
            None => (length, None),
            Some(Effect::IoError | Effect::Panic) => return ffi::SQLITE_IOERR_WRITE,
            Some(Effect::ReadOnly) => return ffi::SQLITE_READONLY,
            Some(Effect::DiskFull) => return ffi::SQLITE_FULL,
            // A write within one sector is complete or absent.
            Some(Effect::ShortWrite) if length <= 512 => return ffi::SQLITE_FULL,
            Some(Effect::ShortWrite) => (length / 2, Some(ffi::SQLITE_FULL)),
        };
        state(file).note(|file| {
            let bytes = slice::from_raw_parts(buffer.cast::<u8>(), usize::try_from(length).unwrap_or(0));
            Operation::Write { file, offset: offset.cast_unsigned(), bytes: bytes.to_vec() }
        });
        let code = pass_on!(file, xWrite, buffer, length, offset);
        failure.unwrap_or(code)
    }
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, length: ffi::sqlite3_int64) -> c_int {
    unsafe {
        if state(file).fault(Call::Truncate).is_some() {
            return ffi::SQLITE_IOERR_TRUNCATE;
        }
        state(file).note(|file| Operation::Truncate { file, length: length.cast_unsigned() });
        pass_on!(file, xTruncate, length)
    }
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, flags: c_int) -> c_int {
    unsafe {
        if state(file).fault(Call::Sync).is_some() {
            return ffi::SQLITE_IOERR_FSYNC;
        }
        // Recorded before the sync: writes during the sync need not become durable by it.
        state(file).note(|file| Operation::Sync { file });
        pass_on!(file, xSync, flags)
    }
}

unsafe extern "C" fn file_size(file: *mut ffi::sqlite3_file, size: *mut ffi::sqlite3_int64) -> c_int {
    unsafe { pass_on!(file, xFileSize, size) }
}

unsafe extern "C" fn lock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    unsafe { pass_on!(file, xLock, level) }
}

unsafe extern "C" fn unlock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    unsafe { pass_on!(file, xUnlock, level) }
}

unsafe extern "C" fn check_reserved_lock(file: *mut ffi::sqlite3_file, out: *mut c_int) -> c_int {
    unsafe { pass_on!(file, xCheckReservedLock, out) }
}

unsafe extern "C" fn file_control(
    file: *mut ffi::sqlite3_file,
    operation: c_int,
    argument: *mut c_void,
) -> c_int {
    unsafe { pass_on!(file, xFileControl, operation, argument) }
}

unsafe extern "C" fn sector_size(file: *mut ffi::sqlite3_file) -> c_int {
    unsafe { pass_on!(file, xSectorSize) }
}

unsafe extern "C" fn device_characteristics(file: *mut ffi::sqlite3_file) -> c_int {
    unsafe { pass_on!(file, xDeviceCharacteristics) }
}

unsafe extern "C" fn shm_map(
    file: *mut ffi::sqlite3_file,
    page: c_int,
    page_size: c_int,
    extend: c_int,
    out: *mut *mut c_void,
) -> c_int {
    unsafe { pass_on!(file, xShmMap, page, page_size, extend, out) }
}

unsafe extern "C" fn shm_lock(
    file: *mut ffi::sqlite3_file,
    offset: c_int,
    count: c_int,
    flags: c_int,
) -> c_int {
    unsafe { pass_on!(file, xShmLock, offset, count, flags) }
}

unsafe extern "C" fn shm_barrier(file: *mut ffi::sqlite3_file) {
    unsafe {
        let real = real_file(file);
        if let Some(method) = (*(*real).pMethods).xShmBarrier {
            method(real);
        }
    }
}

unsafe extern "C" fn shm_unmap(file: *mut ffi::sqlite3_file, delete: c_int) -> c_int {
    unsafe { pass_on!(file, xShmUnmap, delete) }
}
