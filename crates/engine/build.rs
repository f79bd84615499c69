//! Compiles the shim (file system and memtables) against the headers of the RocksDB that is linked.

use std::env;
use std::path::PathBuf;

const SOURCES: [&str; 2] = ["file_system.cc", "memtable.cc"];

fn main() {
    for source in SOURCES.iter().chain(&["files.h", "hook.h", "objects.h"]) {
        println!("cargo:rerun-if-changed=src/files/shim/{source}");
    }
    println!("cargo:rerun-if-env-changed=ROCKSDB_INCLUDE_DIR");
    // A prebuilt RocksDB may have its headers elsewhere; librocksdb-sys looks at the same variable.
    // Otherwise they are in its own sources, whether it compiled them or was given an archive of
    // the same version.
    let sources = env::var_os("DEP_ROCKSDB_CARGO_MANIFEST_DIR");
    let sources = PathBuf::from(sources.expect("librocksdb-sys says where its sources are"));
    let sources = sources.join("rocksdb");
    let include = match env::var_os("ROCKSDB_INCLUDE_DIR") {
        Some(given) => PathBuf::from(given),
        None => sources.join("include"),
    };
    // The definitions that librocksdb-sys compiles with and that its headers look at: classes must
    // have the same layout on both sides.
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .std("c++20")
        .include(include)
        // A memtable is told of keys and memory in classes that no public header has.
        .include(sources)
        .define("NDEBUG", "1");
    build
        .define("ROCKSDB_PLATFORM_POSIX", None)
        .define("HAVE_ALIGNED_NEW", None);
    if env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        build.define("OS_LINUX", None);
    }
    build.flag_if_supported("-Wno-unused-parameter");
    for source in SOURCES {
        build.file(format!("src/files/shim/{source}"));
    }
    build.compile("entremet_shim");
}
