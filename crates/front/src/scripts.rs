//! The user of the engine as which a tenant's scripts run.
//!
//! A script reaches keys that it does not declare, so marks in the request do not keep it apart.
//! The engine does: it checks each command of a script against the access list of the user that
//! runs it. A tenant's own user may use the keys with the tenant's marks, and the commands of which
//! the engine is known to check all keys.

use crate::space::Space;
use crate::table::{Command, Table};
use crate::value::frame;
use crate::way::Way;

/// What a link and a transaction need beside the commands on keys, and what scripts use that has
/// none. `AUTH` and `HELLO` are everybody's, and no script's.
const WITHOUT_KEYS: [&str; 7] = ["asking", "multi", "exec", "unwatch", "ping", "echo", "time"];

/// Commands on keys that no script may call: `COPY … DB` reaches databases that tenants do not
/// have, and of `SORT_RO` an engine may check no key (CVE-2023-41053).
const KEPT_BACK: [&str; 2] = ["copy", "sort_ro"];

/// An engine has one interpreter for all scripts. Where a script can change the tables that all of
/// them use (CVE-2022-24735, CVE-2025-46818), it can have others' scripts do what it wants.
const PROBE: &str = "\
local function open(t) return type(t) == 'table' and pcall(rawset, t, 'entremet', nil) end
local found = open(getmetatable(''))
for name, value in pairs(_G) do
  local own = name == 'KEYS' or name == 'ARGV'
  found = found or not own and (open(value) or open(getmetatable(value)))
end
if found then
  return redis.error_reply('ERR one script can change what others do (CVE-2025-46818): update it')
end
return 1";

/// The user.
#[derive(Debug)]
pub struct ScriptUser {
    name: String,
    password: Option<String>,
    /// Patterns of keys, and commands, as an access list writes them.
    rights: Vec<Vec<u8>>,
}

impl ScriptUser {
    /// The user of the tenant of this name. Where it has no password none is asked for.
    #[must_use]
    pub fn new(tenant: &str, space: &Space, table: &Table, password: Option<String>) -> Self {
        let keys = space.globs().into_iter();
        let mut rights: Vec<Vec<u8>> = keys.map(|glob| [b"~", &glob[..]].concat()).collect();
        let granted = table.all().filter(|command| granted(command));
        let mut commands: Vec<_> = granted.map(|command| command.spec.name).collect();
        commands.sort_unstable();
        rights.extend(commands.iter().map(|name| format!("+{name}").into_bytes()));
        Self {
            name: format!("entremet@{tenant}"),
            password,
            rights,
        }
    }

    /// Replies to what [`ScriptUser::write`] writes.
    pub const REPLIES: u32 = 3;

    /// Writes the words by which a connection that may say so makes the user and becomes it.
    pub fn write(&self, out: &mut Vec<u8>) {
        let set = self.password.as_ref();
        let set = set.map_or("nopass".to_owned(), |password| format!(">{password}"));
        let name = self.name.as_bytes();
        let begin: [&[u8]; 7] = [
            b"ACL",
            b"SETUSER",
            name,
            b"reset",
            b"on",
            b"resetchannels",
            set.as_bytes(),
        ];
        let rights: Vec<&[u8]> = self.rights.iter().map(Vec::as_slice).collect();
        frame([&begin[..], &rights].concat().into_iter(), out);
        let password = self.password.as_deref().unwrap_or("-").as_bytes();
        let rest: [&[&[u8]]; 2] = [
            &[b"AUTH", name, password],
            &[b"EVAL", PROBE.as_bytes(), b"0"],
        ];
        for words in rest {
            frame(words.iter().copied(), out);
        }
    }
}

/// Whether a script may call a command.
fn granted(command: &Command) -> bool {
    let name = command.spec.name;
    match command.way {
        Way::Engine | Way::Waits | Way::Sort => {
            let least = usize::from(command.spec.arity.unsigned_abs());
            let mut keys = command.keys.iter();
            !KEPT_BACK.contains(&name) && keys.all(|keys| keys.is_certain(least))
        }
        Way::Script | Way::EveryNode => true,
        _ => WITHOUT_KEYS.contains(&name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    fn words(tenant: &str, space: &Space, password: Option<&str>) -> Vec<String> {
        let reply = include_bytes!("tests/redis-7.0.15.resp");
        let table = Table::read(&Value::read(reply).expect("a reply"), None).expect("a table");
        let user = ScriptUser::new(tenant, space, &table, password.map(str::to_owned));
        let mut bytes = Vec::new();
        user.write(&mut bytes);
        let end = crate::Scanner::default().end(&bytes).expect("words");
        let words = Value::read(&bytes[..end.expect("whole")]).expect("words");
        let words = words.items().iter();
        words
            .map(|word| word.text().expect("text").to_owned())
            .collect()
    }

    #[test]
    fn a_user_may_use_its_tenant_s_keys() {
        let one = words("web", &Space::of("web"), None);
        let begin = "ACL SETUSER entremet@web reset on resetchannels nopass ~{@web}*";
        assert_eq!(one[..8].join(" "), begin);
        let several = words("web", &Space::in_parts("web", 3), Some("secret"));
        assert_eq!(several[6..8].join(" "), ">secret ~{@web/??????}*");
        let unmarked = words("web", &Space::unmarked(), None);
        assert_eq!(unmarked[7..11].join(" "), "~ ~[^{]* ~{ ~{[^@]*");
    }

    #[test]
    fn a_user_may_call_what_is_certain_to_stay_with_its_keys() {
        let words = words("web", &Space::of("web"), None);
        let may = |name: &str| words.contains(&format!("+{name}"));
        for name in [
            "get",
            "lmpop",
            "xread",
            "sort",
            "object|encoding",
            "memory|usage",
            "eval_ro",
            "evalsha",
            "script|load",
            "script|exists",
            "exec",
            "time",
        ] {
            assert!(may(name), "{name}");
        }
        for name in [
            // The last STORE counts, and the first is checked.
            "georadius",
            // Without a source, the engine (7.0) checks nothing.
            "pfmerge",
            "copy",
            "sort_ro",
            "scan",
            "keys",
            "flushall",
            "config",
            "migrate",
            "publish",
            "script|flush",
            "select",
            "object",
            "memory",
        ] {
            assert!(!may(name), "{name}");
        }
        assert!(words[8..].iter().all(|word| word.starts_with('+')));
    }
}
