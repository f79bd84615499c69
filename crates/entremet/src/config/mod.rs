//! The configuration: read, checked, said back.
//!
//! [`load`] finds everything that is wrong in one go. Keys are declared in [`schema`]; the structs
//! here are what the rest of the program uses. Where the file says nothing the schema's default
//! holds.

mod across;
mod admin;
mod device;
mod footprint;
mod fronts;
mod read;
pub mod reference;
pub mod schema;
pub mod tls;
mod upstream;
mod url;
pub mod validity;
mod words;

#[cfg(test)]
mod tests;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use front::Both;
use policy::dispatch::Discipline;
use policy::slo::admission::Admission;
use policy::slo::control::Policy;
use rustls::pki_types::ServerName;
use server::tenants::{Password, Plain};
use server::FrontsOptions;
use telemetry::admin::Token;
use toml::de::DeTable;

use settings::tenant::Settings;
use settings::units::{ByteRate, Bytes, Rate, Time};
use settings::{Reader, Report};

pub use footprint::Footprint;
pub use url::EngineUrl;
pub use words::words;

/// Cores that one process uses at most: the server keeps sets of cores in 64 bits.
const CORES_MAX: usize = 64;

/// A configuration that passed all checks.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// `[server]`.
    pub server: Server,
    /// `[engine]`.
    pub engine: Engine,
    /// `[scheduler]`.
    pub scheduler: Scheduler,
    /// `[device]`.
    pub device: Device,
    /// `[control]`.
    pub control: Control,
    /// `[[tenant]]`, in the order of the file; names are unique.
    pub tenants: Vec<Tenant>,
}

/// `[server]`: where clients connect and what they may ask.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// Addresses without TLS; may be empty when there is TLS.
    pub listen: Vec<SocketAddr>,
    /// The admin address.
    pub admin: SocketAddr,
    /// Names by which it may be called.
    pub admin_names: Vec<String>,
    /// What requests to it must bring.
    pub admin_token: Option<Token>,
    /// It is served by TLS, with these files.
    pub admin_tls: Option<TlsFiles>,
    /// Threads that serve clients; none: as many as the process may use.
    pub cores: Option<u32>,
    /// Tenants' connections at once.
    pub max_connections: u32,
    /// Connections at once that speak for nobody yet.
    pub max_newcomers: u32,
    /// Operators' connections beside those.
    pub operator_connections: u32,
    /// Patience with a connection that must log in.
    pub login_timeout: Option<Time>,
    /// Connections of one address.
    pub connection_rate: Rate,
    /// Silence after which a connection is closed.
    pub idle_timeout: Option<Time>,
    /// Patience with a client that takes nothing of a large reply.
    pub stalled_timeout: Time,
    /// Largest argument.
    pub max_value: Bytes,
    /// Memory of the process; none: as much as suits the rest.
    pub max_memory: Option<Bytes>,
    /// Memory that one command may work with.
    pub max_command_memory: Bytes,
    /// Most arguments of one request.
    pub max_arguments: u32,
    /// Patience with requests under way after SIGTERM.
    pub drain: Time,
    /// Slow log threshold; none: no slow log.
    pub slow_log_over: Option<Time>,
    /// Entries of each slow log.
    pub slow_log_length: u32,
    /// TLS.
    pub tls: Option<Tls>,
    /// It is one of several fronts before a cluster.
    pub cluster: Option<Cluster>,
}

impl Server {
    /// Threads that serve clients, the machine asked where the file does not say.
    pub fn cores_or_all(&self) -> usize {
        let all = || {
            std::thread::available_parallelism()
                .map_or(1, std::num::NonZero::get)
                .min(CORES_MAX)
        };
        self.cores.map_or_else(all, |cores| cores as usize)
    }
}

/// `server.tls`.
#[derive(Clone, Debug, PartialEq)]
pub struct Tls {
    /// Addresses with TLS, at least one.
    pub listen: Vec<SocketAddr>,
    /// What it is served with.
    pub files: TlsFiles,
}

/// Files for the server's side of TLS.
#[derive(Clone, Debug, PartialEq)]
pub struct TlsFiles {
    /// Certificate chain.
    pub cert: PathBuf,
    /// Private key.
    pub key: PathBuf,
    /// Whose signature a client's certificate must bear.
    pub client_ca: Option<PathBuf>,
}

/// `server.cluster`: how it is one of several fronts.
#[derive(Clone, Debug, PartialEq)]
pub struct Cluster {
    /// Where cluster-aware clients connect, at one address at least.
    pub listen: Both<Option<SocketAddr>>,
    /// What else is said of it.
    pub options: FrontsOptions,
}

/// Files for the client's side of TLS.
#[derive(Clone, Debug, PartialEq)]
pub struct TrustFiles {
    /// Whose signature a server's certificate must bear.
    pub ca: PathBuf,
    /// What the client shows of itself; none: nothing.
    pub own: Option<KeyPair>,
}

/// A certificate and its key.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyPair {
    /// Certificate chain.
    pub cert: PathBuf,
    /// Private key.
    pub key: PathBuf,
}

/// The engine before which this server stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Upstream {
    /// Where it is.
    pub url: EngineUrl,
    /// `[engine.tls]`, if and only if the URL asks for it.
    pub tls: Option<EngineTls>,
    /// It is taken to be away when it has not said a word for so long while it is waited for.
    pub timeout: Time,
    /// The tenant whose keys have no mark.
    pub unmarked: Option<String>,
    /// Clients that may wait there.
    pub waiting: u32,
}

/// `engine.tls`.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineTls {
    /// With which files it is spoken.
    pub files: TrustFiles,
    /// Whose certificate the engine's must be; none: that of the host by which it is reached.
    pub name: Option<ServerName<'static>>,
}

/// `[engine]`: where and how data is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Engine {
    /// The engine that keeps the data instead; none: this process does.
    pub upstream: Option<Upstream>,
    /// The data directory.
    pub path: PathBuf,
    /// Object cache of all tenants together.
    pub object_cache: Bytes,
    /// Block cache of all tenants together.
    pub block_cache: Bytes,
    /// Memtables of all tenants together.
    pub write_buffers: Bytes,
    /// A tenant's memtable.
    pub memtable: Bytes,
    /// Who may have how much of block cache and write buffers.
    pub memory: Memory,
    /// A tenant's writes waiting for their commit.
    pub pending: Bytes,
    /// Threads that read from the disk.
    pub handlers: u32,
    /// Threads that commit.
    pub committers: u32,
    /// Threads that flush.
    pub flush_threads: u32,
    /// Threads that compact.
    pub compaction_threads: u32,
    /// Data files around the page cache.
    pub direct_io: bool,
    /// Data files open for each tenant.
    pub max_open_files: u32,
    /// Idle time after which a tenant's database is closed.
    pub idle_close: Option<Time>,
}

/// Who may have how much of the caches and the write buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Its allotment, and what others leave.
    Allotted,
    /// Whoever asks most has most of the one block cache; memtables are limited one by one.
    Shared,
}

impl Memory {
    /// The words of the configuration.
    pub const WORDS: [(&'static str, Self); 2] =
        [("allotted", Self::Allotted), ("shared", Self::Shared)];
}

/// `[scheduler]`: how the server is divided.
#[derive(Clone, Debug, PartialEq)]
pub struct Scheduler {
    /// At the request stage.
    pub request: Discipline,
    /// At the device stage, if there is one.
    pub device: Discipline,
    /// One core's requests per second.
    pub requests: Rate,
    /// One core's bytes in per second.
    pub bandwidth_in: ByteRate,
    /// One core's bytes out per second.
    pub bandwidth_out: ByteRate,
    /// Bytes of one turn.
    pub chunk: Bytes,
    /// Seed of the lottery; none: another at each start.
    pub seed: Option<u64>,
}

/// `[device]`: what is under the databases.
#[derive(Clone, Debug, PartialEq)]
pub struct Device {
    /// Whether there is a stage before the disk, by a profile beside the data where no other is
    /// named.
    pub stage: bool,
    /// Measured cost curve.
    pub profile: Option<PathBuf>,
    /// `hdd` or `ssd`.
    pub model: Option<String>,
    /// Emulated disks.
    pub disks: u32,
    /// Data lies within this many bytes of each; none: anywhere.
    pub span: Option<Bytes>,
    /// Whether reserved requests are priced by profiles, or as one I/O of their size.
    pub learn_prices: bool,
    /// Whether reservations beyond what may be promised are taken.
    pub overbook: bool,
}

impl Device {
    /// Whether there is a stage before the device, or will be.
    pub fn scheduled(&self) -> bool {
        self.stage || self.profile.is_some() || self.model.is_some()
    }
}

/// `[control]`: what keeps promises.
#[derive(Clone, Debug, PartialEq)]
pub struct Control {
    /// How they are kept.
    pub policy: Policy,
    /// Between decisions.
    pub interval: Time,
    /// What becomes of a promise that does not fit.
    pub admission: Admission,
}

/// `[[tenant]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Tenant {
    /// Its name.
    pub name: String,
    /// The hash of its password, or none.
    pub password: Password,
    /// The password, where it is given in plain text.
    pub plain: Option<Plain>,
    /// What it is promised and held to.
    pub settings: Settings,
}

/// What the command line says instead of the file.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// `--listen`: replaces `server.listen`, unless empty.
    pub listen: Vec<SocketAddr>,
    /// `--admin`.
    pub admin: Option<SocketAddr>,
    /// `--cluster-listen`: replaces `server.cluster.listen`.
    pub cluster_listen: Option<SocketAddr>,
    /// `--node`: replaces `server.cluster.node`.
    pub node: Option<String>,
    /// `--engine`: replaces `engine.kind` and `engine.url`.
    pub engine: Option<String>,
    /// `--data`: replaces `engine.path`.
    pub data: Option<PathBuf>,
}

/// A good configuration, and the warnings about it.
#[derive(Debug)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// Warnings only; print them.
    pub report: Report,
}

/// Reads a file; without one, defaults. Files that the configuration names (TLS) are read too, and
/// plain passwords are hashed, which takes tens of milliseconds each.
///
/// # Errors
/// Everything that is wrong, in one report.
pub fn load(file: Option<&Path>, overrides: &Overrides) -> Result<Loaded, Report> {
    let Some(file) = file else {
        return parse("defaults", "", overrides);
    };
    let name = file.display().to_string();
    match fs::read_to_string(file) {
        Ok(text) => parse(&name, &text, overrides),
        Err(cause) => {
            let mut report = Report::new(&name, "");
            let advice =
                "name a TOML file that exists and is readable; `entremet serve --help` tells more";
            report
                .error(None, "", format!("cannot be read: {cause}"))
                .advice(advice);
            Err(report)
        }
    }
}

/// Reads a configuration from its text; `name` is what problems call it.
///
/// # Errors
/// Everything that is wrong, in one report.
pub fn parse(name: &str, text: &str, overrides: &Overrides) -> Result<Loaded, Report> {
    let (config, reader) = read_all(name, text, overrides);
    let report = reader.report.into_inner();
    match config {
        Some(config) if !report.failed() => Ok(Loaded { config, report }),
        _ => Err(report),
    }
}

fn read_all(name: &str, text: &str, overrides: &Overrides) -> (Option<Config>, Reader) {
    let mut report = Report::new(name, text);
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        report.error(error.span(), "", format!("not TOML: {}", error.message()));
    }
    let reader = Reader::new(&schema::LANGUAGE, report, !errors.is_empty());
    let config = read::config(&reader.root(document.get_ref()), overrides);
    if let Some(config) = &config {
        across::check(config, &reader);
    }
    (config, reader)
}
