"""Numbers and texts that are easily changed, and what each is once it is stored, by the arithmetic of Python.

Standard library only: values_python.py imports it with another interpreter.
"""

import base64
import json
import math
import struct
from decimal import Decimal
from fractions import Fraction

SCHEMA = """document thing {
  struct spot { field x type double {} field n type long {} field label type string {} }
  field small type byte { header }
  field whole type int { header }
  field large type long { header }
  field single type float { header }
  field precise type double { header }
  field text type string { header }
  field yes type bool { header }
  field data type raw { }
  field longs type array<long> { }
  field singles type array<float> { }
  field numbers type array<double> { }
  field words type array<string> { }
  field counts type map<string, long> { }
  field names type map<long, string> { }
  field shares type map<string, double> { }
  field weights type weightedset<string> { }
  field sizes type weightedset<long> { }
  field place type spot { }
  field places type array<spot> { }
}
document row {
  field small type long { }
  field whole type long { }
  field large type long { }
  field single type double { }
  field precise type double { }
  field text type string { }
  field yes type bool { }
  field number type long { }
}
document figure {
  field small type byte { header }
  field large type long { header }
  field precise type double { header }
}"""
SPOT = {"x": "double", "n": "long", "label": "string"}
FIELDS = {
    "small": "byte", "whole": "int", "large": "long", "single": "float", "precise": "double", "text": "string", "yes": "bool",
    "data": "raw", "longs": ["long"], "singles": ["float"], "numbers": ["double"], "words": ["string"], "counts": ("string", "long"),
    "names": ("long", "string"), "shares": ("string", "double"), "weights": ("string", "int"), "sizes": ("long", "int"),
    "place": SPOT, "places": [SPOT]}
SCALARS = [name for name, kind in FIELDS.items() if isinstance(kind, str)]
NUMBERS = ("small", "whole", "large", "single", "precise")
BITS = {"byte": 8, "int": 32, "long": 64}

KEPT, REFUSED, EITHER = "kept", "refused", "kept or refused"
_SET = {
    KEPT: {
        "small": ["-128", "127", "0"],
        "whole": ["-2147483648", "2147483647", "0"],
        "large": ["0", "-1", "9007199254740993", "-9007199254740993", "9223372036854775807", "-9223372036854775808"],
        "single": ["0.1", "16777216", "3.4028235e38", "-3.4028235e38", "1e-45", "1.1754944e-38", "-0.0", '"NaN"', '"Infinity"',
                   '"-Infinity"'],
        "precise": ["0.1", "-0.0", "5e-324", "1.7976931348623157e308", "-1.7976931348623157e308", "2.2250738585072011e-308",
                    "0.30000000000000004", "1e23", "9007199254740992", "1e300", "4.35", '"NaN"', '"Infinity"', '"-Infinity"'],
        "text": [json.dumps(text) for text in (
            "", " ", " x ", "null", "true", "NaN", "Infinity", "1e5", "007", "0x1F", "-0", "1_000", "12:30:45", "2026-02-30", "~", "=", "<<",
            "\u00e9", "e\u0301", "\U0001f600", "\u2028", "\u0085", "\x7f", "\x92", "\ufffe", "\uffff", "\ufeff", "a\tb\nc\r\nd", "\r",
            '"', "'", "\\", "\\n", ",", ";", "=1+1", "<&>", "%41", "%", "+", "{}", "[1]", "id:a:b::c", "- a: b", "#", "a" * 70000)],
        "yes": ["true", "false"],
        "data": ['"AAECA/8="', '"CgoNCg=="', '"+/+/"'],
        "longs": ["[9223372036854775807,-9223372036854775808,9007199254740993]", "[0]"],
        "singles": ["[0.1,-0.0,3.4028235e38,1e-45]"],
        "numbers": ["[0.1,-0.0,5e-324,1.7976931348623157e308]", '["NaN","Infinity","-Infinity",1]'],
        "words": ['["","a,b","\\"","\\n"," "]', '["null"]'],
        "counts": ['{"":1,"a.b":9007199254740993,"007":7,"7":8,"}":9,"\\"":10}'],
        "names": ['{"9007199254740993":"x","9007199254740992":"y","-9223372036854775808":"z"}'],
        "shares": ['{"a":0.1,"b":-0.0}', '{"a":"NaN","b":"Infinity"}'],
        "weights": ['{"":1,"x":-2147483648,"X":2147483647}'],
        "sizes": ['{"9007199254740993":1,"9007199254740992":-1}'],
        "place": ['{"x":0.1,"n":9007199254740993,"label":""}', '{"x":-0.0}', '{"x":"NaN"}'],
        "places": ['[{"x":5e-324,"n":-9223372036854775808},{"label":"a,\\"b"}]'],
    },
    EITHER: {  # Each is kept as the nearest number of its field, or refused.
        "small": ["1.0", "1e2"], "large": ["1.0", "1e3", "9007199254740993.0", "-0"],
        "single": ["16777217", "1.000000178813934326171874999999999", "1.000000178813934326171875", "3.40282356e38", "1e-60", "33554431"],
        "precise": ["9007199254740993", "1e-400", "123456789012345678", "9223372036854775807", "18446744073709551617",
                    "0.500000000000000166533453693773481063544750213623046875"],
        "text": ['"\\u0001"', '"\\u001f"', '"\\u0000"'],
        "numbers": ["[9007199254740993]"], "singles": ["[16777217]"], "place": ['{"x":9007199254740993}'],
    },
    REFUSED: {
        "small": ["128", "-129", "1.5", "1e3"], "whole": ["2147483648", "-2147483649", "0.5", "1e10"],
        "large": ["9223372036854775808", "-9223372036854775809", "18446744073709551616", "1.5", "1e400", "1e-1",
                  "9007199254740992.5"],
        "single": ["1e39", "-1e300"], "precise": ["1e309", "-1e400"],
        "longs": ["[9223372036854775808]", "[0.5]"], "singles": ["[1e39]"], "numbers": ["[1,1e400]"],
        "counts": ['{"a":9223372036854775808}'], "names": ['{"9223372036854775808":"x"}', '{"1.5":"x"}'],
        "weights": ['{"a":2147483648}'], "place": ['{"n":9223372036854775808}', '{"x":1e400}'],
    },
}


class Value:
    """One value of one field, as JSON text."""

    def __init__(self, number, verdict, field, text):
        self.number = number
        self.verdict = verdict
        self.field = field
        self.text = text
        self.stored = None if verdict == REFUSED else canonical(FIELDS[field], loads(text))

    def id(self, way):
        return f"id:{way}:thing::{self.number}"

    def __repr__(self):
        return f"{self.field} {self.text[:80]}"


class Number(str):
    """A number of JSON, by its text."""


def loads(text):
    """Reads JSON without changing a number. Objects become lists of pairs."""
    return json.loads(text, parse_int=Number, parse_float=Number, parse_constant=_refuse, object_pairs_hook=lambda pairs: Pairs(pairs))


def _refuse(name):
    raise ValueError(f"{name} is not JSON")


class Pairs(list):
    """An object of JSON, in its order."""


def nearest_float(exact):
    """Returns the float of 32 bits that is nearest to a Fraction, as one of 64 bits; of two, the even one. Infinite if there is none."""
    near = struct.unpack("<f", struct.pack("<f", min(max(float(exact), -3.4028234663852886e38), 3.4028234663852886e38)))[0]
    bits = struct.unpack("<i", struct.pack("<f", abs(near)))[0]
    limit = Fraction(2) ** 128
    size = abs(exact)
    best = min((bits + step for step in (-1, 0, 1) if 0 <= bits + step <= 0x7f7fffff),
               key=lambda one: (abs(Fraction(struct.unpack("<f", struct.pack("<i", one))[0]) - size), one & 1))
    found = struct.unpack("<f", struct.pack("<i", best))[0]
    if size - Fraction(found) >= limit - size:
        found = math.inf
    return math.copysign(found, -1 if exact < 0 else 1)


def _floating(kind, value):
    if isinstance(value, float):
        number = value
        if kind == "float" and math.isfinite(number) and nearest_float(Fraction(number)) != number:
            raise ValueError(f"{value!r} is no float of 32 bits")
    else:
        text = str(value)
        if text in ("NaN", "Infinity", "-Infinity"):
            number = float(text)
        else:
            exact = Decimal(text)
            number = float(text) if kind == "double" or exact == 0 else nearest_float(Fraction(exact))
    return "nan" if math.isnan(number) else number.hex()


def _integer(kind, value):
    if isinstance(value, bool):
        raise ValueError(f"{value!r} is no number")
    exact = Fraction(value) if isinstance(value, (int, float)) else Fraction(Decimal(str(value)))
    if exact.denominator != 1 or not -(2 ** (BITS[kind] - 1)) <= exact < 2 ** (BITS[kind] - 1):
        raise ValueError(f"{value!r} is no {kind}")
    return int(exact)


def _pairs(value):
    if isinstance(value, dict):
        return list(value.items())
    return [(key, member) for key, member in value]


def canonical(kind, value):
    """Returns a value that is equal exactly if the stored values are: kind is one of FIELDS, `value` is of loads() or of Python."""
    if isinstance(kind, list):
        return [canonical(kind[0], one) for one in value]
    if isinstance(kind, tuple):
        return sorted([canonical(kind[0], key), canonical(kind[1], one)] for key, one in _pairs(value))
    if isinstance(kind, dict):
        return sorted([name, canonical(kind[name], one)] for name, one in _pairs(value) if one is not None)
    if kind in BITS:
        return _integer(kind, value)
    if kind in ("float", "double"):
        return _floating(kind, value)
    if kind == "bool":
        if value not in (True, False, "true", "false"):
            raise ValueError(f"{value!r} is no bool")
        return value in (True, "true")
    if kind == "raw":
        return (bytes(value) if isinstance(value, (bytes, bytearray)) else base64.b64decode(value, validate=True)).hex()
    if not isinstance(value, str) or isinstance(value, Number):
        raise ValueError(f"{value!r} is no text")
    return value


def canonical_fields(fields):
    """Returns the canonical values of the fields of a document, without those that are not set."""
    return {name: canonical(FIELDS[name], value) for name, value in _pairs(fields) if value is not None}


def to_python(kind, value):
    """Returns what a program of Python has of a value of loads()."""
    if isinstance(kind, list):
        return [to_python(kind[0], one) for one in value]
    if isinstance(kind, tuple):
        return {to_python(kind[0], Number(key) if kind[0] == "long" else key): to_python(kind[1], one) for key, one in value}
    if isinstance(kind, dict):
        return {name: to_python(kind[name], one) for name, one in value}
    if kind == "raw":
        return base64.b64decode(value)
    if kind in ("float", "double") and value in ("NaN", "Infinity", "-Infinity"):
        return float(value)
    if isinstance(value, Number):
        return int(value) if value.lstrip("-").isdigit() and value != "-0" else float(value)
    return value


def without_floats(value):
    """Returns a value in which numbers are texts again, for readers that make a double of the few digits of a float field."""
    if isinstance(value, dict):
        return {name: without_floats(one) for name, one in value.items()}
    if isinstance(value, list):
        return [without_floats(one) for one in value]
    return Number(value) if isinstance(value, float) else value


def all_values():
    values = []
    for verdict, fields in _SET.items():
        for field, texts in fields.items():
            for text in texts:
                values.append(Value(len(values) + 1, verdict, field, text))
    return values


VALUES = all_values()
