//! What TLS is served with, at the start and after each reload.

use std::sync::Arc;

use telemetry::CertificateSnapshot;

use super::clocks::wall_ms;
use crate::config::tls::{self, Loaded};
use crate::config::{Config, TlsFiles};

/// Less is said as a warning, days.
const SOON_DAYS: i64 = 14;

/// The certificates of both addresses, where they have TLS.
pub struct Certificates {
    /// Shown to clients.
    pub clients: Option<Loaded>,
    /// Shown by the admin address.
    pub admin: Option<Loaded>,
}

impl Certificates {
    /// Reads the files.
    ///
    /// # Errors
    /// What is wrong with them, though they were good when the configuration was checked.
    pub fn load(config: &Config) -> Result<Self, String> {
        let load = |section: &str, files: Option<&TlsFiles>| match files.map(tls::load) {
            None => Ok(None),
            Some(Ok(loaded)) => Ok(Some(loaded)),
            Some(Err(problems)) => {
                let text = |problem: &tls::TlsProblem| {
                    format!(
                        "{section}.{}: {}; {}",
                        problem.key, problem.what, problem.advice
                    )
                };
                Err(problems.iter().map(text).collect::<Vec<_>>().join("\n"))
            }
        };
        let server = &config.server;
        Ok(Self {
            clients: load("server.tls", server.tls.as_ref().map(|tls| &tls.files))?,
            admin: load("server.admin_tls", server.admin_tls.as_ref())?,
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
            let valid =
                |loaded: &Loaded| loaded.valid.doubt(now_s, 0).is_none_or(|(_, valid)| valid);
            if !valid(new) && valid(old) {
                let (what, _) = new.valid.doubt(now_s, 0).unwrap_or_default();
                return Err(format!("the new certificate of {shown_to} {what}"));
            }
        }
        Ok(new)
    }

    /// Says in the log how long each is valid.
    pub fn say(&self) {
        let now_s = now_s();
        for (shown_to, loaded) in self.all() {
            let Some(loaded) = loaded else { continue };
            match loaded.valid.doubt(now_s, SOON_DAYS) {
                Some((what, _)) => tracing::warn!("the certificate of {shown_to} {what}"),
                None => tracing::info!(
                    "the certificate of {shown_to} {}",
                    loaded.valid.expires(now_s)
                ),
            }
        }
    }

    /// For the metrics.
    pub fn snapshots(&self) -> Vec<CertificateSnapshot> {
        let snapshot = |(shown_to, loaded): (&str, Option<&Loaded>)| {
            Some(CertificateSnapshot {
                shown_to: shown_to.to_string(),
                expires_unix_s: loaded?.valid.until_s,
            })
        };
        self.all().filter_map(snapshot).collect()
    }

    fn all(&self) -> impl Iterator<Item = (&'static str, Option<&Loaded>)> {
        [
            ("clients", self.clients.as_ref()),
            ("admin", self.admin.as_ref()),
        ]
        .into_iter()
    }
}

/// The server's side of one of them.
pub fn config_of(loaded: Option<&Loaded>) -> Option<Arc<rustls::ServerConfig>> {
    loaded.map(|loaded| Arc::clone(&loaded.config))
}

fn now_s() -> i64 {
    (wall_ms() / 1_000) as i64
}
