//! What can go wrong, in words that say where and what to do.

use std::path::PathBuf;
use std::sync::Arc;

/// Every error of this crate. It is cheap to clone: one failed batch answers many writers.
#[derive(Debug, Clone, thiserror::Error)]
pub enum EngineError {
    /// A file-system call outside RocksDB failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried, as a verb ("create", "lock", …).
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The operating system's reason.
        source: Arc<std::io::Error>,
    },
    /// Another process serves this data directory.
    #[error("the data directory {} is in use by another server: stop that one, or start this one with another --data", directory.display())]
    Locked {
        /// The data directory.
        directory: PathBuf,
    },
    /// What lies at the data directory's path is not what this server opened when it started.
    #[error("the data directory {} is no longer the one that this server started with: it was moved, replaced or unmounted. Put it back, or restart the server; databases that are already open remain usable", directory.display())]
    Moved {
        /// The data directory.
        directory: PathBuf,
    },
    /// The data directory was written by a version that this one does not know.
    #[error("{} says \"{found}\", this version reads only \"{expected}\": use the version that wrote it", path.display())]
    Format {
        /// The format file.
        path: PathBuf,
        /// Its content.
        found: String,
        /// What this version writes.
        expected: &'static str,
    },
    /// A tenant's name cannot become a directory.
    #[error("the tenant name \"{name}\" cannot be used: {reason}")]
    Name {
        /// The name.
        name: String,
        /// Why not.
        reason: &'static str,
    },
    /// A tenant's database does not open: damaged or unreadable files.
    #[error("the database of tenant \"{tenant}\" in {} does not open: {message}; other tenants are not affected; if a file is damaged or missing, restore that directory from a backup, or move it away to start this tenant empty", directory.display())]
    Open {
        /// The tenant.
        tenant: String,
        /// Its directory.
        directory: PathBuf,
        /// RocksDB's reason, which names the file.
        message: String,
    },
    /// A tenant's log is damaged before its end: what is behind the damage would be lost.
    #[error("the log of tenant \"{tenant}\" is damaged: {} at byte {at}: {what}, and acknowledged writes are missing there. Other tenants are not affected. Restore the tenant's directory from a backup; or create the empty file {} to keep everything before the damage and give up what is behind it: the server finds that file within half a minute, and keeps a copy of the damaged logs in damaged-logs", file.display(), consent.display())]
    Log {
        /// The tenant.
        tenant: String,
        /// The file.
        file: PathBuf,
        /// Where in it.
        at: u64,
        /// What is wrong there.
        what: &'static str,
        /// The file that an operator creates to give up what is lost.
        consent: PathBuf,
    },
    /// Writes of this tenant cannot be made durable; they are refused until a retry succeeds.
    #[error("MISCONF Errors writing to the data directory {}: {message}. Commands that may modify the data set are refused until writing works again; the server keeps trying. Free some space or repair the disk; reads go on", directory.display())]
    Write {
        /// The tenant's directory.
        directory: PathBuf,
        /// The reason, as RocksDB or the operating system gave it.
        message: String,
    },
    /// Stored data could not be read or understood.
    #[error("reading from {} failed: {message}; if the file is damaged, restore this directory from a backup", directory.display())]
    Read {
        /// The tenant's directory.
        directory: PathBuf,
        /// The reason.
        message: String,
    },
    /// FLUSHDB emptied databases so often that ids for their collections are used up.
    #[error("FLUSHDB was used 16 million times on this tenant's databases, which is the most that this server supports: FLUSHALL empties all of them and starts the count again")]
    Slots,
    /// The keyspace was dropped while the request was under way.
    #[error("the tenant \"{tenant}\" was removed")]
    Dropped {
        /// The tenant.
        tenant: String,
    },
    /// A key, or a name in a collection, is longer than it may be.
    #[error("a key, field or member of {bytes} bytes is too long: at most {bytes_max}. Nothing was changed: store it as a value instead, under a shorter name")]
    Long {
        /// Its length.
        bytes: usize,
        /// What it may have.
        bytes_max: usize,
    },
    /// A command would hold more of what it reads in memory than it may.
    #[error("the reply is too large to be held in memory")]
    Large,
    /// A command would work with more memory than it may.
    #[error("the command needs more than {bytes_max} bytes of memory (server.max_command_memory). It changed nothing: ask for less at a time")]
    Work {
        /// What it may.
        bytes_max: u64,
    },
    /// A command would work with more memory than its tenant has left for that.
    #[error("the command needs more memory than this tenant has left for its requests (request_memory). It changed nothing: try again later, or ask for less at a time")]
    Memory,
    /// There is no room in the tenant's log: [`crate::Keyspace::wait_room`], and run it again.
    #[error("the tenant's log is full")]
    Full,
    /// Nobody waits any more for what a command reads.
    #[error("the client is gone")]
    Abandoned,
    /// The engine is shutting down.
    #[error("the server is shutting down")]
    Shutdown,
    /// A command broke a rule of this crate (a key it did not declare, a write in a read-only
    /// scan, …). Always a bug in the caller; nothing was written.
    #[error("internal error: {0}")]
    Misuse(&'static str),
}

impl EngineError {
    /// The text of an error reply, without the leading `-`: a code word, then the sentence. Only an
    /// operator is told where the server's files are; a tenant is told what it can act on.
    #[must_use]
    pub fn reply(&self, operator: bool) -> String {
        match self {
            EngineError::Write { .. } if operator => self.to_string(),
            _ if operator => format!("ERR {self}"),
            EngineError::Write { message, .. } => format!(
                "MISCONF Errors writing to the data directory: {}. Commands that may modify the data set are refused until \
                 writing works again; the server keeps trying, and reads go on. The server's log names the file",
                cause(message)
            ),
            EngineError::Read { message, .. } => format!(
                "ERR reading failed: {}. The server's log names the file",
                cause(message)
            ),
            EngineError::Open { message, .. } => format!(
                "ERR this tenant's database does not open: {}. The server's log names the file; its operator can restore \
                 the database from a backup",
                cause(message)
            ),
            EngineError::Io { source, .. } => {
                format!("ERR a file of the server cannot be used: {}", cause(&source.to_string()))
            }
            EngineError::Locked { .. } | EngineError::Moved { .. } | EngineError::Format { .. } => {
                "ERR the server's data cannot be used. Its log says why".into()
            }
            EngineError::Log { .. } => {
                "ERR this tenant's log is damaged: writes that were acknowledged are missing there. The server's log \
                 names the file; its operator can restore the database from a backup"
                    .into()
            }
            EngineError::Name { .. }
            | EngineError::Slots
            | EngineError::Dropped { .. }
            | EngineError::Long { .. }
            | EngineError::Large
            | EngineError::Work { .. }
            | EngineError::Memory
            | EngineError::Full
            | EngineError::Abandoned
            | EngineError::Shutdown
            | EngineError::Misuse(_) => format!("ERR {self}"),
        }
    }

    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> EngineError {
        let path = path.into();
        move |source| EngineError::Io {
            action,
            path,
            source: Arc::new(source),
        }
    }
}

/// What RocksDB and the operating system say, in their words, and the same for those who must not
/// see paths. RocksDB puts the file's name into the message, in several places, so a cause that is
/// not known here is not repeated.
const CAUSES: &[(&str, &str)] = &[
    ("No space left on device", "No space left on device"),
    ("Disk quota exceeded", "Disk quota exceeded"),
    ("Read-only file system", "Read-only file system"),
    ("Input/output error", "Input/output error"),
    ("Too many open files", "Too many open files"),
    ("Permission denied", "Permission denied"),
    ("No such file or directory", "a file is missing"),
    ("Corruption", "a file is damaged"),
    ("records have format", "the files are of another version"),
];

fn cause(message: &str) -> &'static str {
    let known = CAUSES.iter().find(|(text, _)| message.contains(text));
    known.map_or("the storage failed", |(_, words)| words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    /// Every error that carries a path, with one in every place where RocksDB puts it.
    fn with_paths() -> Vec<EngineError> {
        let directory = PathBuf::from("/srv/secret/tenants/web");
        let message = |cause: &str| {
            format!("IO error: {cause}: While appending to file: /srv/secret/tenants/web/000012.log: {cause}")
        };
        let mut errors = vec![
            EngineError::io("open", directory.join("LOCK"))(io::Error::from_raw_os_error(13)),
            EngineError::Locked {
                directory: directory.clone(),
            },
            EngineError::Format {
                path: directory.join("FORMAT"),
                found: "/srv/secret".into(),
                expected: "1",
            },
        ];
        for cause in ["No space left on device", "Corruption", "something new"] {
            let (directory, message) = (directory.clone(), message(cause));
            errors.push(EngineError::Open {
                tenant: "web".into(),
                directory: directory.clone(),
                message: message.clone(),
            });
            errors.push(EngineError::Write {
                directory: directory.clone(),
                message: message.clone(),
            });
            errors.push(EngineError::Read { directory, message });
        }
        errors
    }

    #[test]
    fn only_operators_see_paths() {
        for error in with_paths() {
            let (tenants, operators) = (error.reply(false), error.reply(true));
            assert!(
                !tenants.contains('/') || tenants.contains("Input/output"),
                "{tenants}"
            );
            assert!(!tenants.contains("secret"), "{tenants}");
            assert!(operators.contains("/srv/secret"), "{operators}");
            let code = |text: &str| text.split(' ').next().map(str::to_string);
            assert_eq!(code(&tenants), code(&operators));
        }
    }

    #[test]
    fn a_tenant_is_told_what_it_can_act_on() {
        let [.., full, _, _, _, _, _, _] = &with_paths()[..] else {
            panic!("they are listed above")
        };
        assert_eq!(
            full.reply(false).matches("No space left on device").count(),
            1
        );
        let work = EngineError::Work { bytes_max: 7 };
        assert_eq!(work.reply(false), work.reply(true));
    }
}
