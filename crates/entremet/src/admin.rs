//! A running server's admin address, as subcommands ask it.

mod fetch;
mod way;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use settings::address;

pub use fetch::{Admin, FetchError};
pub use way::{trust, Stream, Tls};

/// Which server, and how it is asked.
#[derive(Args, Clone, Debug)]
pub struct AdminArgs {
    /// Admin address of the server
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9380", value_parser = address)]
    pub admin: SocketAddr,

    /// File with the token that the admin address asks for; else the environment's
    /// ENTREMET_ADMIN_TOKEN
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,

    /// Ask by TLS, and trust the certificates in this file (PEM)
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,

    /// Name in the server's certificate, where it is not its address
    #[arg(long, value_name = "NAME", requires = "ca")]
    pub name: Option<String>,
}
