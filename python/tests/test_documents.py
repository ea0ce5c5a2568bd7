"""Single documents: every kind of value, conditions, versions, and what is refused with which words."""

import math
import pickle
from decimal import Decimal

import pytest

import fjord
from fjord import _core, _options, jobs, schema
from fjord.testing import LocalCluster

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


def test_numbers_of_other_packages_are_taken_in_puts_and_updates(client, space):
    numpy = pytest.importorskip("numpy")
    fields = {"sold": numpy.bool_(True), "price": numpy.int16(3), "rating": numpy.float32(0.1), "weight": Decimal("0.1"),
              "level": numpy.int8(-128), "stock": numpy.uint64(2**63 - 1)}
    stored = {"sold": True, "price": 3, "rating": float(numpy.float32(0.1)), "weight": 0.1, "level": -128, "stock": 2**63 - 1}
    client.put(space(1), fields)
    client.update(space(2), {name: {"assign": value} for name, value in fields.items()}, create=True)
    assert client.get(space(1)) == client.get(space(2)) == stored
    client.put(space(1), {"sold": numpy.bool_(False), "rating": Decimal("1.00000017881393432617187499")})  # Below half a step.
    assert client.get(space(1)) == {"sold": False, "rating": 1.0000001192092896}
    client.put(space(1), {"stock": 1})
    client.update(space(1), {"stock": {"increment": Decimal(2**53 + 1)}})
    assert client.get(space(1)) == {"stock": 2**53 + 2}
    for wrong in (numpy.bool_(True), numpy.array([1.5])):
        with pytest.raises(fjord.WrongType):
            client.put(space(1), {"weight": wrong})


def test_updates_take_numbers_that_are_not_finite(client, space):
    client.put(space(1), {})
    client.update(space(1), {"weight": {"assign": -math.inf}, "rating": {"assign": math.nan}})
    document = client.get(space(1))
    assert document["weight"] == -math.inf and math.isnan(document["rating"])


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
    ({"moods": {"\ud800": 1}}, "moods{\\ud800}", "str without surrogates", "str '\\ud800'"),
    ({"years": {"\ud800": "x"}}, "years{\\ud800}", "int (int)", "str '\\ud800'"),
    ({"weight": 2**53 + 1}, "weight", "an integer that double holds without rounding it", "int 9007199254740993"),
    ({"weight": Decimal("1e400")}, "weight", "a number within the range of double", "Decimal Decimal('1E+400')"),
    ({"weight": Decimal("-1e-400")}, "weight", "a number within the range of double", "Decimal Decimal('-1E-400')"),
    ({"rating": 1e-60}, "rating", "a number within the range of float", "float 1e-60"),
    ({"rating": 1e39}, "rating", "a number within the range of float", "float 1e+39"),
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


def test_documents_of_fjords_own_types_are_read_only(client):
    own = "id:fjord:fjord_job:n=1:mine"
    for write in (lambda: client.put(own, {}), lambda: client.update(own, {}), lambda: client.remove(own)):
        with pytest.raises(fjord.Unauthorized, match="fjord_job are Fjord's own"):
            write()
    stats = client.feed([(own, {"job": "x"})])
    assert stats.failed_by_code == {"UNAUTHORIZED": 1}
    with pytest.raises(fjord.NotFound):
        client.get(own)


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


def refused(call):
    """Returns the text of the WrongType that a call raises."""
    with pytest.raises(fjord.WrongType) as caught:
        call()
    assert isinstance(caught.value, fjord.Error) and isinstance(caught.value, ValueError) and isinstance(caught.value, TypeError)
    return str(caught.value)


def test_wrong_arguments_name_place_expectation_and_value(client, address, space):
    id = space(1)
    client.put(id, {"price": 1})
    wrong = {
        "id: expected str, got NoneType None": [lambda: client.get(None), lambda: client.put(None, {}),
                                                lambda: client.remove(None), lambda: client.admin.bucket_of(None),
                                                lambda: client.jobs.get(None)],
        "timeout: expected a number of seconds, got str 'x'": [
            lambda: client.get(id, timeout="x"), lambda: client.put(id, {}, timeout="x"),
            lambda: client.feed([], timeout="x"), lambda: client.get_many([id], timeout="x"),
            lambda: fjord.Client(address, timeout="x"), lambda: client.search("tea", timeout="x")],
        "priority: expected str, got int 5": [lambda: client.get(id, priority=5), lambda: client.feed([], priority=5),
                                              lambda: fjord.Client(address, priority=5), lambda: client.visit(priority=5)],
        "create: expected bool, got int 1": [lambda: client.put(id, {}, create=1)],
        "ids: expected an iterable of str, got int 5": [lambda: client.get_many(5)],
        "ids: expected an iterable of str, got str 'id:a:item::1'": [lambda: client.get_many("id:a:item::1")],
        "rows: expected an iterable of rows, got int 5": [lambda: client.feed(5)],
        "fields: expected a list of str, got int 5": [lambda: client.get(id, fields=5), lambda: client.visit(fields=5)],
        "retry: expected fjord.RetryPolicy, got str 'x'": [lambda: fjord.Client(address, retry="x")],
        "values: expected a mapping of names, got list [1]": [lambda: client.admin.set([1])],
        "a name in values: expected str, got int 5": [lambda: client.admin.set({5: 1}), lambda: client.tune.apply({5: 1})],
        "sample: expected a number of seconds, got str 'x'": [lambda: client.tune.plan(sample="x")],
        "storage: expected int, got str 'x'": [lambda: LocalCluster(storage="x")],
        "query: expected str, got int 5": [lambda: client.search(5)],
        "limit: expected int above 0, got int -1": [lambda: client.search("tea", limit=-1)],
        "batch_rows: expected int above 0, got str 'x'": [lambda: client.visit_arrow(batch_rows="x")],
        "nodes: expected a list of str, got str 'storage.0'": [lambda: client.admin.change_nodes("retire", "storage.0")],
        "type: expected str, got int 5": [lambda: schema.from_arrow(5, 5), lambda: client.aggregate(5)],
        "plan: expected a BalancePlan of plan(), got int 5": [lambda: client.admin.balancing.apply(5)],
        "path: expected str or a path, got int 5": [lambda: client.export(5)],
        "passes: expected script(), application(), aggregation() or a relation, or a list of these, got str 'x'": [
            lambda: client.jobs.submit("x")],
        "schemas: expected the text or path of a schema, or a list of these, got int 5": [
            lambda: client.admin.deploy_schemas(5), lambda: schema.python("item", schemas=5)],
    }
    for text, calls in wrong.items():
        for call in calls:
            assert refused(call) == text
    for call in (lambda: client.get(id, timeout=-1), lambda: client.get(id, priority="x"), lambda: client.visit(priority="x"),
                 lambda: client.get(id, consistency="x"), lambda: client.put(id, {}, durability="x"),
                 lambda: fjord.Client(address, timeout=-1), lambda: client.visit(no_progress_limit=-1)):
        with pytest.raises(fjord.InvalidArgument, match="expected"):
            call()


def test_options_say_what_they_expect():
    """Every member of options that this package sets has a text for WrongType."""
    for name in dir(_core):
        options = getattr(_core, name)
        if name.endswith(("Options", "Request", "Target", "Policy", "Change")) and isinstance(options, type):
            for member in vars(options):
                if not member.startswith("_") and not callable(getattr(options, member)):
                    assert member in _options._EXPECTED, (name, member)


def test_exceptions_can_be_sent_to_another_process(client, space):
    for call in (lambda: client.put(space(1), {"price": "x"}), lambda: client.get(space(1)),
                 lambda: client.put(space(1), {}, required_version=5)):
        with pytest.raises(fjord.Error) as caught:
            call()
        error = caught.value
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error) and str(again) == str(error) and vars(again) == vars(error)
    assert again.current_version == 0
    failed = jobs.JobFailed("it failed", client.jobs.run(client.aggregate("item").agg("count()")).status())
    assert pickle.loads(pickle.dumps(failed)).job == failed.job


def test_no_fields_are_no_fields_everywhere(client, space, tmp_path):
    client.put(space(1), {"price": 1})
    for type in ("item", None):
        assert list(client.visit(space.where(), type=type, fields=[])) == [{}]
    change = next(change for change in client.subscribe(space.where(), type="item", fields=[]) if change.kind == "put")
    assert (change.id, change.document) == (space(1), {})
    client.export(tmp_path / "a.jsonl", space.where(), type="item", fields=[])
    assert "price" not in (tmp_path / "a.jsonl").read_text()


def test_a_closed_iterator_gives_nothing_more(client, space):
    client.feed((space(n), {"price": n}) for n in range(100))
    for source in client.visit(space.where()), client.subscribe(space.where()):
        next(source)
        source.close()
        assert list(source) == []


SCHEMA_OF_CLASHES = """document credit {
  struct Credit { field share type double {} }
  struct a_b { field x type int {} }
  struct aB { field y type string {} }
  struct list { field z type int {} }
  struct optional { field z type int {} }
  field class type int {}
  field class_ type string {}
  field id type string {}
  field dataclass type int {}
  field Optional type int {}
  field str type string {}
  field Credit type Credit {}
  field one type a_b {}
  field two type array<aB> {}
  field three type map<string, list> {}
  field four type optional {}
}"""


def test_names_of_classes_and_attributes_do_not_clash():
    Credit = schema.dataclass("credit", schemas=SCHEMA_OF_CLASHES)
    fields = {"class": 1, "class_": "a", "id": "b", "dataclass": 2, "Optional": 3, "str": "c", "Credit": {"share": 0.5},
              "one": {"x": 1}, "two": [{"y": "d"}], "three": {"k": {"z": 4}}, "four": {"z": 5}}
    made = Credit(id="id:a:credit::1", **Credit._arguments(fields))
    assert made.fields() == fields
    assert (made.class_, made.class__, made.id, made.id_, made.dataclass) == ("a", 1, "id:a:credit::1", "b", 2)
    assert type(made.one) is not type(made.two[0])
