//! The data directory: one server, one format, damage that stays with the damaged tenant, and a
//! crash at any moment.

mod common;

use bytes::Bytes;
use common::{close, commit, engine, engine_options, get, set, small};
use engine::{Engine, EngineError, Entry, Kind, Object, Sync};
use policy::generator::Generator;
use std::fs;
use std::path::Path;

#[test]
fn a_second_engine_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let first = engine(dir.path());
    let error = Engine::open(engine_options(dir.path())).unwrap_err();
    assert!(matches!(error, EngineError::Locked { .. }), "{error}");
    first.shutdown();
    drop(first);
    engine(dir.path()).shutdown();
}

#[test]
fn an_unknown_format_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    engine(dir.path()).shutdown();
    fs::write(
        dir.path().join("FORMAT"),
        "entremet data directory, format 99\n",
    )
    .unwrap();
    let error = Engine::open(engine_options(dir.path())).unwrap_err();
    assert!(matches!(&error, EngineError::Format { .. }), "{error}");
    assert!(error.to_string().contains("format 99"));
}

#[test]
fn names_that_cannot_be_directories_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    for name in ["", &"x".repeat(241), &"é".repeat(50)] {
        let error = engine.keyspace(name, small(Sync::Never)).unwrap_err();
        assert!(matches!(error, EngineError::Name { .. }), "{error}");
    }
    for name in ["..", "a/b", ".removed-x", "%2E"] {
        engine.keyspace(name, small(Sync::Never)).unwrap();
    }
    assert_eq!(fs::read_dir(dir.path().join("tenants")).unwrap().count(), 4);
    engine.shutdown();
}

#[test]
fn where_the_directory_is_another_no_database_is_created() {
    let base = tempfile::tempdir().unwrap();
    let [data, away] = ["data", "away"].map(|name| base.path().join(name));
    let engine = engine(&data);
    let open = engine.keyspace("open", small(Sync::Always)).unwrap();
    set(&open, b"k", b"v").unwrap();
    fs::rename(&data, &away).unwrap();
    let refused = || {
        let error = engine.keyspace("other", small(Sync::Always)).unwrap_err();
        assert!(matches!(&error, EngineError::Moved { .. }), "{error}");
        assert!(!error.reply(false).contains("data/"), "{error}");
    };
    refused();
    assert!(!data.exists(), "something was created");
    fs::create_dir(&data).unwrap();
    for file in ["LOCK", "FORMAT"] {
        fs::copy(away.join(file), data.join(file)).unwrap();
    }
    refused();
    assert!(!data.join("tenants").exists(), "something was created");
    set(&open, b"k", b"w").unwrap();
    fs::remove_dir_all(&data).unwrap();
    fs::rename(&away, &data).unwrap();
    // A keyspace that was refused is tried again in a second; others are opened at once.
    let third = engine.keyspace("third", small(Sync::Always)).unwrap();
    set(&third, b"k", b"v").unwrap();
    assert_eq!(get(&open, b"k").unwrap().unwrap(), "w");
    engine.shutdown();
}

#[test]
fn a_damaged_tenant_harms_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let first = engine(dir.path());
    for name in ["good", "bad"] {
        let keyspace = first.keyspace(name, small(Sync::Always)).unwrap();
        set(&keyspace, b"k", name.as_bytes()).unwrap();
    }
    first.shutdown();
    drop(first);
    let bad = dir.path().join("tenants/bad");
    for file in files(&bad) {
        if file
            .file_name()
            .unwrap()
            .to_string_lossy()
            .starts_with("MANIFEST")
        {
            fs::write(file, "no manifest").unwrap();
        }
    }
    let engine = engine(dir.path());
    let error = engine.keyspace("bad", small(Sync::Always)).unwrap_err();
    assert!(matches!(&error, EngineError::Open { .. }), "{error}");
    let text = error.to_string();
    assert!(
        text.contains("tenants/bad") && text.contains("restore"),
        "{text}"
    );
    let good = engine.keyspace("good", small(Sync::Always)).unwrap();
    assert_eq!(get(&good, b"k").unwrap().unwrap(), "good");
    engine.shutdown();
}

#[test]
fn damage_found_by_a_read_is_an_error_reply() {
    // Values in their block, and values apart.
    for (extension, large_value_bytes, says) in [
        ("sst", u64::MAX, ".sst"),
        ("blob", 1_000, "tenants/t failed: Corruption: Blob"),
    ] {
        let mut options = small(Sync::Always);
        options.large_value_bytes = large_value_bytes;
        // They cannot be compressed.
        let value = |seed: u64| -> Vec<u8> {
            let mut generator = Generator::new(seed);
            (0..5_000).map(|_| generator.bits() as u8).collect()
        };
        let (k, z) = (value(1), value(2));
        let dir = tempfile::tempdir().unwrap();
        let first = engine(dir.path());
        let keyspace = first.keyspace("t", options.clone()).unwrap();
        set(&keyspace, b"k", &k).unwrap();
        set(&keyspace, b"z", &z).unwrap();
        // The log becomes a data file when the database opens again.
        close(&keyspace);
        assert_eq!(get(&keyspace, b"other").unwrap(), None);
        drop(keyspace);
        // A new engine, because the block cache outlives a database.
        first.shutdown();
        drop(first);
        let mut damaged = 0;
        for file in files(&dir.path().join("tenants/t")) {
            if file.extension().is_some_and(|e| e == extension) {
                let mut bytes = fs::read(&file).unwrap();
                // In the second value: the first may be beside the properties.
                bytes[7000] ^= 0xff;
                fs::write(&file, bytes).unwrap();
                damaged += 1;
            }
        }
        assert_eq!(damaged, 1, "{extension}");
        let engine = engine(dir.path());
        let keyspace = engine.keyspace("t", options).unwrap();
        let error = get(&keyspace, b"z").unwrap_err();
        assert!(matches!(error, EngineError::Read { .. }), "{error}");
        assert!(error.to_string().contains(says), "{error}");
        assert_eq!(get(&keyspace, b"k").unwrap().unwrap(), k);
        engine.shutdown();
    }
}

/// What a kill leaves is what the files hold at that moment: copied while the engine runs.
#[test]
fn a_crash_loses_nothing_committed_and_reuses_no_id() {
    let dir = tempfile::tempdir().unwrap();
    let crashed = tempfile::tempdir().unwrap();
    let engine_before = engine(dir.path());
    let keyspace = engine_before
        .keyspace("t", small(Sync::EverySecond))
        .unwrap();
    let mut highest = 0;
    for i in 0..500u32 {
        let key = i.to_be_bytes();
        set(&keyspace, &key, &[b'v'; 300]).unwrap();
        let hash = [b"h", &key[..]].concat();
        let header = commit(&keyspace, &[&hash], |access| {
            let header = access.new_collection(Kind::Hash)?;
            let object = Object::Collection(header);
            access.put(
                &hash,
                Entry {
                    object,
                    expire_at_ms: None,
                },
            )?;
            Ok(header)
        });
        highest = highest.max(header.unwrap().id);
    }
    copy(dir.path(), crashed.path());
    engine_before.shutdown();

    let engine = engine(crashed.path());
    let keyspace = engine.keyspace("t", small(Sync::EverySecond)).unwrap();
    for i in 0..500u32 {
        let value = get(&keyspace, &i.to_be_bytes()).unwrap();
        assert_eq!(value, Some(Bytes::from(vec![b'v'; 300])), "key {i}");
    }
    let header = commit(&keyspace, &[b"new"], |access| {
        access.new_collection(Kind::Hash)
    })
    .unwrap();
    assert!(header.id > highest);
    engine.shutdown();
}

#[test]
fn a_dropped_keyspace_is_gone_and_its_holders_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let keyspace = engine.keyspace("t", small(Sync::Never)).unwrap();
    set(&keyspace, b"k", b"v").unwrap();
    engine.drop_keyspace("t").unwrap();
    engine.drop_keyspace("never existed").unwrap();
    let error = set(&keyspace, b"k", b"v").unwrap_err();
    assert!(matches!(error, EngineError::Dropped { .. }), "{error}");
    assert_eq!(fs::read_dir(dir.path().join("tenants")).unwrap().count(), 0);
    let again = engine.keyspace("t", small(Sync::Never)).unwrap();
    assert_eq!(get(&again, b"k").unwrap(), None);
    engine.shutdown();
    let error = set(&again, b"k", b"v").unwrap_err();
    assert!(matches!(error, EngineError::Shutdown), "{error}");
}

fn files(directory: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for path in files(from) {
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, target).unwrap();
        }
    }
}
