"""Random commands, from the tables of both servers: the names are Entremet's, the forms of their words are Redis's."""

# BYLEX needs equal scores, or Redis leaves its reply open; LCS of long strings is refused by each
# in a way of its own.
NOT_MADE = {"zrangebylex", "zrevrangebylex", "zlexcount", "zremrangebylex", "lcs"}
# WAIT waits for replicas; what DUMP returns, and RESTORE takes, is of each server's own.
NO_MODEL = {"dump", "restore", "wait"}
# Of the whole keyspace: nobody else may write meanwhile.
WHOLE = {"keys", "scan", "dbsize", "randomkey"}
GROUPS = {"string", "bitmap", "hash", "sorted-set", "generic"}
FIELDS = [b"f%d" % number for number in range(12)]
NUMBERS = (b"0", b"1", b"-1", b"2", b"3", b"10", b"-3", b"100")
DOUBLES = (b"0", b"1", b"-1.5", b"2", b"2.25", b"1e3", b"inf", b"-inf", b"(1", b"3", b"x")
PATTERNS = (b"*", b"f*", b"?1", b"[f]1*", b"s*", b"\\f", b"*1*2*")
# Lengths of values: on both sides of what lies in pieces (64 KiB) and of what a core takes in a
# turn.
LENGTHS = (1,) * 20 + (200,) * 4 + (5_000, 70_000, 70_000, 300_000)
# So many more words, now and then: a handler's part, and a thread's of its own.
MANY = (60, 300, 1_200)
KINDS = {"string": b"s", "bitmap": b"s", "hash": b"h", "sorted-set": b"z"}
# Far from one another and from now: what one does with them does not depend on which millisecond it
# is.
SECONDS_MIN, SECONDS_MAX = 100_000, 10_000_000
EPOCH_S = 4_000_000_000


def flat(pairs):
    """A map of RESP2, as a dictionary."""
    return dict(zip(pairs[::2], pairs[1::2]))


def tables(server, reference):
    """(forms, others): commands on data with the forms of their words, and the names of all other commands."""
    names = {name.decode().lower() for name in server.ask("COMMAND", "LIST")}
    docs = {name.decode(): flat(doc) for name, doc in flat(reference.ask("COMMAND", "DOCS")).items()}
    forms = {
        name: (docs[name][b"group"].decode(), [flat(words) for words in docs[name].get(b"arguments", [])])
        for name in sorted(names & set(docs) - NO_MODEL)
        if docs[name][b"group"].decode() in GROUPS and b"subcommands" not in docs[name]
    }
    assert len(forms) > 80, sorted(forms)
    others = sorted(name for name in names - set(forms) - {"shutdown"})
    return {name: form for name, form in forms.items() if name not in NOT_MADE}, others


class Words:
    """Makes commands by `chance` alone."""

    def __init__(self, chance, forms):
        self.chance, self.forms = chance, forms
        self.names = sorted(set(forms) - WHOLE)
        self.count = 0

    def value(self):
        """Says who made it, so that whoever gets it wrongly can be told."""
        self.count += 1
        number = self.chance.random()
        if number < 0.3:
            return self.chance.choice(NUMBERS)
        return (b"v%d." % self.count).ljust(self.chance.choice(LENGTHS), b"x")

    def command(self, keys, whole=False):
        """A command on some of `keys`; with `whole`, one on the whole keyspace may be made as well."""
        name = self.chance.choice(sorted(WHOLE & set(self.forms)) if whole else self.names)
        group, words = self.forms[name]
        made = [name.upper().encode()]
        key = lambda: self.key(keys, KINDS.get(group))  # noqa: E731
        for word in words:
            self.word(word, key, made)
        if b"numkeys" in [word[b"name"] for word in words]:
            made = self.with_numkeys(made, words, key)
        if name in ("scan", "hscan", "zscan"):
            made = [*made[: 1 if name == "scan" else 2], b"0", *self.chance.choice(([], [b"MATCH", b"*"])), b"COUNT", b"1000000"]
        if name == "bitop":
            made[1] = self.chance.choice((b"AND", b"OR", b"XOR", b"NOT"))
        return tuple(made)

    def key(self, keys, kind):
        fitting = [key for key in keys if key[:1] == kind]
        return self.chance.choice(fitting if fitting and self.chance.random() < 0.95 else keys)

    def with_numkeys(self, made, words, key):
        """The count of keys must be that of the keys behind it."""
        count, ahead = self.chance.choice((1, 2, 2, 3, 5)), 3 if words[0][b"name"] == b"destination" else 2
        tail = [word for word in words if word[b"name"] not in (b"destination", b"numkeys", b"key")]
        made = [*made[: ahead - 1], b"%d" % count, *(key() for _ in range(count))]
        for word in tail:
            if word[b"name"] == b"weight":
                if self.chance.random() < 0.3:
                    made += [b"WEIGHTS", *(self.chance.choice(NUMBERS) for _ in range(count))]
            else:
                self.word(word, key, made)
        return made

    def word(self, form, key, made):
        """Appends the words of one argument."""
        flags = form.get(b"flags", [])
        # Sessions keep to the first database: tests/clients/test_databases.py has the others.
        if b"optional" in flags and (self.chance.random() < 0.65 or form.get(b"token") == b"DB"):
            return
        times = 1
        if b"multiple" in flags:
            times = self.chance.choice(MANY) if self.chance.random() < 0.04 else self.chance.choice((1, 1, 2, 3))
        if b"token" in form and form[b"type"] != b"pure-token":
            made.append(form[b"token"])
        for _ in range(times):
            self.one(form, key, made)

    def one(self, form, key, made):
        kind, name = form[b"type"], form[b"name"]
        inner = [flat(words) for words in form.get(b"arguments", [])]
        if kind == b"oneof":
            self.word(self.chance.choice([choice for choice in inner if choice.get(b"token") != b"BYLEX"]), key, made)
        elif kind == b"block":
            for word in inner:
                self.word(word, key, made)
        elif kind == b"pure-token":
            made.append(form[b"token"])
        elif kind == b"key":
            made.append(key())
        elif name in (b"field", b"member"):
            made.append(self.chance.choice(FIELDS) if self.chance.random() < 0.9 else b"f%d" % self.chance.randrange(2_000))
        elif name in (b"seconds", b"milliseconds") or kind == b"unix-time":
            made.append(self.time(name, kind))
        elif name == b"encoding":
            made.append(self.chance.choice((b"u8", b"i16", b"i64", b"u63", b"i5")))
        elif name == b"offset":
            made.append(b"%d" % self.chance.choice((0, 1, 7, 100, 70_000, 200_000, -1)))
        elif kind == b"integer":
            made.append(self.chance.choice(NUMBERS))
        elif kind == b"double":
            made.append(self.chance.choice(DOUBLES))
        elif kind == b"pattern":
            made.append(self.chance.choice(PATTERNS))
        elif name in (b"min", b"max", b"start", b"stop", b"end") or b"increment" in name:
            made.append(self.chance.choice(NUMBERS + DOUBLES))
        else:
            made.append(self.value())

    def time(self, name, kind):
        """A time to live, or a moment: far ahead, or over."""
        if self.chance.random() < 0.1:
            return b"-1"
        at = self.chance.randrange(SECONDS_MIN, SECONDS_MAX) + (EPOCH_S if kind == b"unix-time" else 0)
        return b"%d" % (at * 1000 if b"milliseconds" in name else at)

    def hostile(self, others):
        """Anything at all: it need not make sense."""
        chance = self.chance
        if chance.random() < 0.5:
            return self.command([b"s1", b"h1", b"z1"], whole=chance.random() < 0.1)
        name = chance.choice(others).upper().encode().split(b"|")
        words = [chance.choice((b"1", b"*", b"client", b"s1", b"x" * 3_000, self.value())) for _ in range(chance.choice((0, 1, 1, 2, 3, 200)))]
        return (*name, *words)
