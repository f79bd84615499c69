//! Configurations on the disk: what is said about bad ones, and how good ones are said back.
//!
//! `tests/bad/X.toml` is refused with the text of `tests/bad/X.txt`; `tests/good/X.toml` is taken
//! with the words of `tests/good/X.txt`. `UPDATE_GOLDEN=1` writes the texts anew: read the
//! difference before you keep it.

use std::path::{Path, PathBuf};
use std::{env, fs};

use entremet::config::{load, parse, words, Overrides};

fn cases(kind: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(kind);
    let entries = fs::read_dir(&folder).expect("the folder of cases");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut cases: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .collect();
    cases.sort();
    assert!(!cases.is_empty(), "{}", folder.display());
    cases
}

fn compare(case: &Path, said: &str) {
    let golden = case.with_extension("txt");
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&golden, said).expect("the expected text can be written");
    }
    let expected = fs::read_to_string(&golden).unwrap_or_default();
    assert!(
        said == expected,
        "{}: expected\n{expected}\nbut it said\n{said}",
        case.display()
    );
}

fn read(case: &Path) -> (String, String) {
    let name = case
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    (name, fs::read_to_string(case).expect("the case"))
}

#[test]
fn bad_ones_are_refused_with_all_that_is_wrong() {
    for case in cases("bad") {
        let (name, text) = read(&case);
        match parse(&name, &text, &Overrides::default()) {
            Ok(_) => panic!("{name} should be refused"),
            Err(report) => compare(&case, &format!("{report}{}\n", report.summary())),
        }
    }
}

#[test]
fn good_ones_are_said_back() {
    for case in cases("good") {
        let (name, text) = read(&case);
        match parse(&name, &text, &Overrides::default()) {
            Ok(loaded) => compare(
                &case,
                &format!("{}{}", words(&loaded.config), loaded.report),
            ),
            Err(report) => panic!("{name} should be good:\n{report}"),
        }
    }
}

mod tls {
    use super::*;
    use rcgen::{generate_simple_self_signed, CertifiedKey};
    use tempfile::TempDir;

    /// A folder with two pairs of certificate and key, and a configuration that uses the files
    /// named.
    fn folder() -> TempDir {
        let folder = TempDir::new().expect("a folder");
        for name in ["one", "other"] {
            let names = vec!["localhost".to_string()];
            let CertifiedKey { cert, signing_key } =
                generate_simple_self_signed(names).expect("a certificate");
            fs::write(folder.path().join(format!("{name}.crt")), cert.pem()).expect("written");
            fs::write(
                folder.path().join(format!("{name}.key")),
                signing_key.serialize_pem(),
            )
            .expect("written");
        }
        fs::write(folder.path().join("empty.pem"), "").expect("written");
        folder
    }

    fn said(folder: &TempDir, cert: &str, key: &str, client_ca: &str) -> Result<(), String> {
        let at = |name: &str| folder.path().join(name).display().to_string();
        let (cert, key) = (at(cert), at(key));
        let client_ca = match client_ca {
            "" => String::new(),
            name => format!("client_ca = '{}'", at(name)),
        };
        let text = format!(
            "[server]\nlisten = []\n[server.tls]\nlisten = '127.0.0.1:0'\ncert = '{cert}'\nkey = '{key}'\n{client_ca}\n"
        );
        loaded(folder, &text).map(|_| ())
    }

    /// What is said of a configuration, in words, or what is wrong with it.
    fn loaded(folder: &TempDir, text: &str) -> Result<String, String> {
        let file = folder.path().join("entremet.toml");
        fs::write(&file, text).expect("written");
        load(Some(&file), &Overrides::default())
            .map(|loaded| words(&loaded.config))
            .map_err(|report| report.to_string())
    }

    /// Of an engine: the files that are named, with `{}` in the place of the folder.
    fn engine(folder: &TempDir, tls: &str) -> Result<String, String> {
        let tls = tls.replace("{}", &folder.path().display().to_string());
        let text =
            format!("[engine]\nkind = 'redis'\nurl = 'rediss://a.example'\n[engine.tls]\n{tls}");
        loaded(folder, &text)
    }

    #[test]
    fn an_engine_is_reached_with_files_that_belong_together() {
        let folder = folder();
        let said = engine(&folder, "ca = '{}/one.crt'\nname = 'b.example'").expect("good");
        assert!(said.contains("by TLS only"), "{said}");
        assert!(
            said.contains("a certificate of b.example that one of"),
            "{said}"
        );
        let own = "ca = '{}/one.crt'\ncert = '{}/other.crt'\nkey = '{}/other.key'";
        let said = engine(&folder, own).expect("good");
        assert!(
            said.contains("shows it") && said.contains("other.crt"),
            "{said}"
        );
        for (tls, place, what) in [
            (
                "ca = '{}/no.crt'",
                ":5:6: error: engine.tls.ca: ",
                "No such file",
            ),
            (
                "ca = '{}/empty.pem'",
                ":5:6: error: engine.tls.ca: ",
                "holds nothing",
            ),
            (
                "ca = '{}/one.crt'\ncert = '{}/one.crt'\nkey = '{}/other.key'",
                ":7:7: error: engine.tls.key: ",
                "does not fit the certificate",
            ),
        ] {
            let report = engine(&folder, tls).expect_err(what);
            assert!(report.contains(place) && report.contains(what), "{report}");
        }
    }

    #[test]
    fn cluster_aware_clients_may_come_by_tls_alone() {
        let folder = folder();
        let at = |name: &str| folder.path().join(name).display().to_string();
        let said = |cluster: &str| {
            let text = format!(
                "[server.tls]\nlisten = []\ncert = '{}'\nkey = '{}'\n{cluster}\n\
                 [engine]\nkind = 'redis-cluster'\nurl = 'redis-cluster://10.0.0.1'\n",
                at("one.crt"),
                at("one.key")
            );
            let loaded = parse("tls.toml", &text, &Overrides::default()).expect("good");
            format!("{}{}", words(&loaded.config), loaded.report)
        };
        let alone =
            "[server.cluster]\ntls_listen = '127.0.0.1:1'\ntls_announce = 'a.example.org:2'";
        let place = "connect to 127.0.0.1:1 with TLS (they are told a.example.org:2) for what";
        let idle = "server.tls.listen: is empty: nobody is served with TLS";
        assert!(said(alone).contains(place), "{}", said(alone));
        assert!(!said(alone).contains(idle), "{}", said(alone));
        assert!(!said(alone).contains("Clients connect to  with TLS"));
        assert!(said("").contains(idle), "{}", said(""));
    }

    #[test]
    fn files_must_be_there_and_belong_together() {
        let folder = folder();
        assert_eq!(said(&folder, "one.crt", "one.key", ""), Ok(()));
        assert_eq!(said(&folder, "one.crt", "one.key", "other.crt"), Ok(()));
        for (cert, key, ca, place, what) in [
            (
                "no.crt",
                "one.key",
                "",
                ":5:8: error: server.tls.cert: ",
                "No such file",
            ),
            (
                "one.crt",
                "no.key",
                "",
                ":6:7: error: server.tls.key: ",
                "No such file",
            ),
            (
                "empty.pem",
                "one.key",
                "",
                ":5:8: error: server.tls.cert: ",
                "holds nothing of the kind",
            ),
            (
                "one.crt",
                "one.crt",
                "",
                ":6:7: error: server.tls.key: ",
                "holds nothing of the kind",
            ),
            (
                "one.crt",
                "other.key",
                "",
                ":6:7: error: server.tls.key: ",
                "does not fit the certificate",
            ),
            (
                "one.crt",
                "one.key",
                "empty.pem",
                ":7:13: error: server.tls.client_ca: ",
                "holds nothing",
            ),
        ] {
            let report = said(&folder, cert, key, ca).expect_err(what);
            assert!(report.contains(place) && report.contains(what), "{report}");
        }
        let both = said(&folder, "no.crt", "no.key", "no.pem").expect_err("three files missing");
        assert_eq!(both.matches(": error: ").count(), 3, "{both}");
    }
}
