"""Single documents: every kind of value, conditions, versions, and what is refused with which words."""

import math
import pickle

import pytest

import fjord

WHOLE = {
    "name": "Tee für \U0001f375\0",
    "price": -2147483648,
    "stock": 2**63 - 1,
    "rating": 0.5,
    "weight": 1e300,
    "sold": True,
    "level": -128,
    "picture": b"\x00\xff",
    "tags": ["a", "", "b"],
    "moods": {"sad": -1, "glad": 3},
    "years": {1999: "x", -1: "y"},
    "maker": {"name": "Bo", "share": 0.25},
    "credits": [{"name": "Al"}, {}],
}


def test_every_kind_of_value_comes_back(client, space):
    written = client.put(space(1), WHOLE)
    assert not written.existed
    document = client.get(space(1))
    assert document == WHOLE
    assert (document.id, document.version) == (space(1), written.version)
    assert {name: type(value) for name, value in document.items()} == {name: type(value) for name, value in WHOLE.items()}


def test_other_types_that_fit_are_taken(client, space):
    class Count:
        def __index__(self):
            return 7

    class Fields:
        def keys(self):
            return ["name"]

        def items(self):
            return [("name", "of a mapping")]

        def __getitem__(self, _):
            raise AssertionError("items() says all")

    client.put(space(1), {"price": Count(), "weight": 3, "picture": bytearray(b"x"), "tags": ("a", "b"), "name": None})
    assert client.get(space(1)) == {"price": 7, "weight": 3.0, "picture": b"x", "tags": ["a", "b"]}
    client.put(space(2), Fields())
    assert client.get(space(2)) == {"name": "of a mapping"}
    client.put(space(3), {"weight": math.inf})
    assert client.get(space(3))["weight"] == math.inf


@pytest.mark.parametrize("fields, field, expected, got", [
    ({"price": "3"}, "price", "int (int)", "str '3'"),
    ({"price": True}, "price", "int (int)", "bool True"),
    ({"price": 3.0}, "price", "int (int)", "float 3.0"),
    ({"price": 2**31}, "price", "int from -2147483648 to 2147483647 (int)", "int 2147483648"),
    ({"stock": 2**63}, "stock", "int from -9223372036854775808 to 9223372036854775807 (long)", "int 9223372036854775808"),
    ({"level": 128}, "level", "int from -128 to 127 (byte)", "int 128"),
    ({"weight": "1"}, "weight", "float (double)", "str '1'"),
    ({"weight": False}, "weight", "float (double)", "bool False"),
    ({"sold": 1}, "sold", "bool", "int 1"),
    ({"name": b"x"}, "name", "str", "bytes b'x'"),
    ({"name": "\ud800"}, "name", "str without surrogates", "str '\\ud800'"),
    ({"picture": "x"}, "picture", "bytes", "str 'x'"),
    ({"tags": "abc"}, "tags", "list (array<string>)", "str 'abc'"),
    ({"tags": ["a", 3]}, "tags[1]", "str", "int 3"),
    ({"tags": 5}, "tags", "list (array<string>)", "int 5"),
    ({"moods": ["sad"]}, "moods", "dict (weightedset<string>)", "list ['sad']"),
    ({"moods": {"sad": "x"}}, "moods{sad}", "int (int)", "str 'x'"),
    ({"years": {"1999": "x"}}, "years{1999}", "int (int)", "str '1999'"),
    ({"maker": {"share": "x"}}, "maker.share", "float (double)", "str 'x'"),
    ({"credits": [{}, {"name": 1}]}, "credits[1].name", "str", "int 1"),
    ({"credits": [None]}, "credits[0]", "dict (struct credit)", "NoneType None"),
    ({1: "x"}, "the name of a field", "str", "int 1"),
    ([1], "fields", "a mapping of field names", "list [1]"),
])
def test_a_wrong_type_names_field_expected_and_got(client, space, fields, field, expected, got):
    with pytest.raises(fjord.WrongType) as caught:
        client.put(space(1), fields)
    assert (caught.value.field, caught.value.expected, caught.value.got) == (field, expected, got)
    assert str(caught.value) == f"{field}: expected {expected}, got {got}"
    assert isinstance(caught.value, (TypeError, ValueError))
    assert client.get(space(1), None) is None


@pytest.mark.parametrize("arguments, error, text", [
    ({"fields": {"colour": 1}}, fjord.InvalidField, "document type item has no field colour"),
    ({"fields": {"maker": {"age": 1}}}, fjord.InvalidField, "maker: struct credit has no field age"),
    ({"id": "id:x:nothing::1"}, fjord.UnknownType, 'there is no document type "nothing"'),
    ({"id": "nonsense"}, fjord.InvalidId, "nonsense"),
    ({"id": 5}, fjord.WrongType, "id: expected str, got int 5"),
    ({"condition": 5}, fjord.WrongType, "condition: expected str, got int 5"),
    ({"condition": "item.price >"}, fjord.InvalidSelection, ""),
    ({"required_version": "x"}, fjord.WrongType, "required_version: expected int, got str 'x'"),
    ({"required_version": -1}, fjord.WrongType, "required_version: expected int from 0"),
    ({"durability": "much"}, ValueError, 'durability is "much": expected default, process or sync'),
    ({"priority": "top"}, ValueError, 'priority is "top": expected default, high, normal or background'),
    ({"timeout": 0}, ValueError, "timeout is 0: expected a number of seconds above 0"),
])
def test_a_wrong_argument_is_named(client, space, arguments, error, text):
    with pytest.raises(error) as caught:
        client.put(**{"id": space(1), "fields": {}, **arguments})
    assert text in str(caught.value)


def test_a_document_that_is_not_there(client, space):
    with pytest.raises(fjord.NotFound) as caught:
        client.get(space(1))
    assert caught.value.code == "NOT_FOUND"
    assert isinstance(caught.value, LookupError)
    assert client.get(space(1), "default") == "default"
    with pytest.raises(fjord.NotFound):
        client.update(space(1), {"price": {"increment": 1}})
    assert not client.remove(space(1)).existed


def test_conditions_and_versions(client, space):
    first = client.put(space(1), {"price": 3}, required_version=0)
    with pytest.raises(fjord.ConditionFailed) as caught:
        client.put(space(1), {"price": 4}, required_version=0)
    assert caught.value.current_version == first.version
    second = client.put(space(1), {"price": 4}, required_version=first.version)
    assert second.existed and second.version > first.version
    with pytest.raises(fjord.ConditionFailed):
        client.remove(space(1), condition="item.price == 3")
    assert client.put(space(1), {"price": 5}, condition="item.price == 4").existed
    with pytest.raises(fjord.ConditionFailed) as caught:
        client.put(space(2), {"price": 5}, condition="item.price == 4")
    assert caught.value.current_version == 0
    assert not client.put(space(2), {"price": 5}, condition="item.price == 4", create=True).existed


def test_updates(client, space):
    client.put(space(1), {"price": 3, "tags": ["a"]})
    client.update(space(1), {"price": {"increment": 2}, "tags": {"add": ["b"]}, "picture": {"assign": b"\x01"}})
    client.update(space(1), {"years{7}": {"assign": "seven"}, "maker.name": {"assign": "Bo"}})
    assert client.get(space(1)) == {"price": 5, "tags": ["a", "b"], "picture": b"\x01", "years": {7: "seven"},
                                    "maker": {"name": "Bo"}}
    assert not client.update(space(2), {"price": {"increment": 2}}, create=True).existed
    with pytest.raises(fjord.InvalidField):
        client.update(space(1), {"colour": {"assign": 1}})
    with pytest.raises(fjord.WrongType) as caught:
        client.update(space(1), {"name": {"assign": object()}})
    assert caught.value.got.startswith("object <object")
    endless = {}
    endless["x"] = endless
    with pytest.raises(RecursionError):
        client.update(space(1), endless)


def test_field_sets(client, space):
    client.put(space(1), {"name": "tea", "price": 3, "stock": 4})
    assert client.get(space(1), fields=["name", "stock"]) == {"name": "tea", "stock": 4}
    assert client.get(space(1), fields="price") == {"price": 3}
    assert client.get(space(1), fields=[]) == {}
    assert client.get(space(1), fields="[id]") == {}
    with pytest.raises(fjord.InvalidRequest):
        client.get(space(1), fields=["colour"])
    with pytest.raises(fjord.WrongType):
        client.get(space(1), fields=[1])


def test_many_at_once_keep_their_order(client, space):
    client.feed((space(n), {"price": n}) for n in range(5000) if n % 3)
    found = client.get_many((space(n) for n in range(5000)), fields=["price"])
    assert [None if one is None else one["price"] for one in found] == [n if n % 3 else None for n in range(5000)]


def test_a_repeated_write_is_applied_once(client, space):
    client.put(space(1), {"price": 0})
    for _ in range(3):
        client.update(space(1), {"price": {"increment": 1}}, idempotency_key="a key of this test")
    assert client.get(space(1))["price"] == 1


def test_durability_and_consistency(client, space):
    client.put(space(1), {"price": 1}, durability="sync", priority="high")
    assert client.get(space(1), consistency="linearizable")["price"] == 1


def test_a_document_says_what_it_is(client, space):
    client.put(space(1), {"price": 1})
    document = client.get(space(1))
    assert repr(document) == f"Document('{space(1)}', {{'price': 1}})"
    again = pickle.loads(pickle.dumps(document))
    assert (again, again.id, again.version) == (document, document.id, document.version)


def test_types(client):
    types = client.types()
    assert types["item"]["credits"] == "array<credit>"
    assert list(types["other"]) == ["name", "price"]
