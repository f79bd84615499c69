//! What TLS is spoken with, at the start and after each reload.

use std::sync::Arc;

use server::Trust;
use telemetry::CertificateSnapshot;

use super::clocks::wall_ms;
use crate::config::tls::{self, Loaded, TlsProblem, Trusting};
use crate::config::validity::Validity;
use crate::config::{Config, EngineTls, TlsFiles};

/// Less is said as a warning, days.
const SOON_DAYS: i64 = 14;

/// The certificates of both addresses and of this server before its engine, where they have TLS.
pub struct Certificates {
    /// Shown to clients.
    pub clients: Option<Loaded>,
    /// Shown by the admin address.
    pub admin: Option<Loaded>,
    /// Shown to the engine, and who may be that.
    pub engine: Option<Trusting>,
}

impl Certificates {
    /// Reads the files.
    ///
    /// # Errors
    /// What is wrong with them, though they were good when the configuration was checked.
    pub fn load(config: &Config) -> Result<Self, String> {
        let load = |section: &str, files: Option<&TlsFiles>| {
            let loaded = files.map(tls::load).transpose();
            loaded.map_err(|problems| said(section, &problems))
        };
        let server = &config.server;
        let engine = engine_tls(config).map(|tls| tls::trust(&tls.files));
        Ok(Self {
            clients: load("server.tls", server.tls.as_ref().map(|tls| &tls.files))?,
            admin: load("server.admin_tls", server.admin_tls.as_ref())?,
            engine: (engine.transpose()).map_err(|problems| said("engine.tls", &problems))?,
        })
    }

    /// Whom this server trusts to be its engine; none: it is spoken to in the clear, or there is
    /// none.
    pub fn trust(&self, config: &Config) -> Option<Trust> {
        let (tls, trusting) = engine_tls(config).zip(self.engine.as_ref())?;
        Some(Trust {
            config: Arc::clone(&trusting.config),
            name: tls.name.clone(),
        })
    }

    /// Reads the files anew. One that is not valid now does not take the place of one that is.
    ///
    /// # Errors
    /// What is wrong with the new ones.
    pub fn renew(&self, config: &Config) -> Result<Self, String> {
        let new = Self::load(config)?;
        let now_s = now_s();
        for ((shown_to, new), (_, old)) in new.all().zip(self.all()) {
            let (Some(new), Some(old)) = (new, old) else {
                continue;
            };
            let valid = |shown: Validity| shown.doubt(now_s, 0).is_none_or(|(_, valid)| valid);
            if !valid(new) && valid(old) {
                let (what, _) = new.doubt(now_s, 0).unwrap_or_default();
                return Err(format!("the new certificate of {shown_to} {what}"));
            }
        }
        Ok(new)
    }

    /// Says in the log how long each is valid.
    pub fn say(&self) {
        let now_s = now_s();
        for (shown_to, valid) in self.all() {
            let Some(valid) = valid else { continue };
            match valid.doubt(now_s, SOON_DAYS) {
                Some((what, _)) => tracing::warn!("the certificate of {shown_to} {what}"),
                None => tracing::info!("the certificate of {shown_to} {}", valid.expires(now_s)),
            }
        }
    }

    /// For the metrics.
    pub fn snapshots(&self) -> Vec<CertificateSnapshot> {
        let snapshot = |(shown_to, valid): (&str, Option<Validity>)| {
            Some(CertificateSnapshot {
                shown_to: shown_to.to_string(),
                expires_unix_s: valid?.until_s,
            })
        };
        self.all().filter_map(snapshot).collect()
    }

    fn all(&self) -> impl Iterator<Item = (&'static str, Option<Validity>)> {
        let served = |loaded: &Option<Loaded>| loaded.as_ref().map(|loaded| loaded.valid);
        let engine = self.engine.as_ref().and_then(|engine| engine.valid);
        [
            ("clients", served(&self.clients)),
            ("admin", served(&self.admin)),
            ("engine", engine),
        ]
        .into_iter()
    }
}

fn engine_tls(config: &Config) -> Option<&EngineTls> {
    config.engine.upstream.as_ref()?.tls.as_ref()
}

fn said(section: &str, problems: &[TlsProblem]) -> String {
    let text = |problem: &TlsProblem| {
        format!(
            "{section}.{}: {}; {}",
            problem.key, problem.what, problem.advice
        )
    };
    problems.iter().map(text).collect::<Vec<_>>().join("\n")
}

/// The server's side of one of them.
pub fn config_of(loaded: Option<&Loaded>) -> Option<Arc<rustls::ServerConfig>> {
    loaded.map(|loaded| Arc::clone(&loaded.config))
}

fn now_s() -> i64 {
    (wall_ms() / 1_000) as i64
}
