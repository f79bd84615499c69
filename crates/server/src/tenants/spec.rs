//! A tenant as it is described.

use settings::tenant::Settings;

use super::{Password, Plain};

/// A tenant as the configuration or an administrator describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct TenantSpec {
    /// 1 to 64 characters of `[A-Za-z0-9_.-]`; also the user name at `AUTH`.
    pub name: String,
    /// What is asked at `AUTH`.
    pub password: Password,
    /// The same in plain text, where the file gives it so.
    pub plain: Option<Plain>,
    /// The rest.
    pub settings: Settings,
}

impl TenantSpec {
    /// A tenant without a password and without promises.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_string(),
            password: Password::None,
            plain: None,
            settings: Settings::default(),
        }
    }

    /// A plain password is hashed with another salt each time that a file is read: if it is one of
    /// those known, it is that one still. The plain text is forgotten.
    pub fn recognise<'a>(&mut self, known: impl Iterator<Item = &'a Password>) {
        let Some(plain) = self.plain.take() else {
            return;
        };
        let mut known = known;
        if let Some(same) = known.find(|password| plain.is(password)) {
            self.password = same.clone();
        }
    }
}
