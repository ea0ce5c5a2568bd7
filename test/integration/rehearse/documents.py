"""The documents of a rehearsal. Each version tells its number, and its text hardly compresses."""

import random

SHELVES = 5
KEYS = 2400
HOT = 800  # Keys below are written again and again by the load; the others only once: a write would heal what is damaged.
FIRST = 400  # The load begins with keys from here on.
BATCH = 40  # Writes of the load at once.
READ = 80  # Reads after them.
PAUSE_S = 0.2  # Of the load after each batch.
TEXT = 1200  # Characters of a text, about.
SCHEMA = """document item {
  field n type long { header }
  field shelf type int { header }
  field text type string { body }
}
"""


def id_of(key):
    return f"id:rehearse:item::{key}"


def key_of(id_):
    return int(id_.rsplit(":", 1)[1])


def fields_of(key, n):
    """Returns the fields of version `n` of a document."""
    return {"n": n, "shelf": key % SHELVES, "text": random.Random(key << 32 | n).randbytes(TEXT // 2 + n % 200).hex()}
