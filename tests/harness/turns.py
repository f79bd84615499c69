"""The largest turns of a server's cores, and what they may be. The server counts them, so that the result is the same on every machine."""

import json
import urllib.request

# A command of a turn looks at 128 words and takes 512 steps at most, a turn has ten commands, or as
# many until 512 steps are taken; it reads a chunk of 64 KiB, and writes one before and one after
# (crates/server/src/unit.rs, engine/src/meter.rs).
WORDS_MAX, BYTES_MAX, STEPS_MAX = 11 * 128, 2 * 65_536, 2 * 512 + 1


def largest_turn(server):
    with urllib.request.urlopen(f"http://127.0.0.1:{server.admin_port}/api/server", timeout=20) as answer:
        return json.load(answer)["largest_turn"]


def is_bounded(turn):
    return turn["words"] <= WORDS_MAX and turn["bytes"] <= BYTES_MAX and turn["steps"] <= STEPS_MAX
