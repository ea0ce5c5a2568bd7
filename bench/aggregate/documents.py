"""The documents of `./run bench aggregate`, made from a seed: lines of JSON, which DuckDB, Spark and `fjord import`
read, and the same without the description as CSV, which PostgreSQL copies.

Every city occurs. The other cities are drawn by Zipf's law, so that a few cities have many documents. The country of a
city is always the same; a document's population is that of a district.
"""

import bisect
import itertools
import json
import random

CITIES = 25_000
COUNTRIES = 195
LINE_BYTES = 800
FIELDS = ("number", "city", "country", "population", "description")


def _words(generator, count):
    consonants = ["b", "d", "f", "g", "h", "k", "l", "m", "n", "p", "r", "s", "t", "v", "st", "br"]
    vowels = ["a", "e", "i", "o", "u", "ai", "ou", "ea"]
    found = {}
    while len(found) < count:
        syllables = generator.randint(2, 4)
        found["".join(generator.choice(consonants) + generator.choice(vowels) for _ in range(syllables))] = True
    return list(found)


def write(json_path, csv_path, count, seed):
    """Returns the bytes of the lines."""
    generator = random.Random(seed)
    cities = [word.capitalize() for word in _words(generator, CITIES)]
    countries = [word.capitalize() for word in _words(generator, COUNTRIES)]
    country_of = [generator.choice(countries) for _ in cities]
    size_of = [int(10 ** generator.uniform(2, 5)) for _ in cities]
    cumulative = list(itertools.accumulate(1 / rank for rank in range(1, CITIES + 1)))
    filler = " ".join(_words(generator, 4000))
    written = 0
    # The numbers are unique keys; they do not come in order.
    numbers = list(range(count))
    generator.shuffle(numbers)
    with open(json_path, "w", encoding="ascii") as lines, open(csv_path, "w", encoding="ascii") as rows:
        for position, number in enumerate(numbers):
            city = position if position < CITIES else bisect.bisect(cumulative, generator.random() * cumulative[-1])
            city = min(city, CITIES - 1)
            population = generator.randint(1, size_of[city])
            document = {"number": number, "city": cities[city], "country": country_of[city], "population": population}
            text = json.dumps(document, separators=(",", ":"))
            rest = LINE_BYTES - len(text) - len(',"description":""') - 1
            begin = generator.randrange(len(filler) - rest)
            lines.write(f'{text[:-1]},"description":"{filler[begin:begin + rest]}"}}\n')
            rows.write(f"{number},{cities[city]},{country_of[city]},{population}\n")
            written += LINE_BYTES
    return written
