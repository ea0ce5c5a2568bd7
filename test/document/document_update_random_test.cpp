// Random updates: both forms read back equal, and applying them agrees with a plain model.

#include <cmath>
#include <optional>

#include "fjord/document/document_update.h"
#include "fjord/document/json.h"
#include "random_values.h"
#include "sample_schema.h"

namespace fjord {
namespace {

FieldValue random_operand(const DataType& target, UpdateAction action, Random& random) {
  if (action == UpdateAction::Assign || action == UpdateAction::Add) return test::random_value(target, random);
  if (is_arithmetic(action)) {
    if (random.chance(0.5)) return static_cast<double>(random.below(64)) / 8.0 + 0.125;
    return test::random_integer<std::int64_t>(random);
  }
  ArrayValue removed;
  if (action == UpdateAction::Remove && is_collection(target.tag())) {
    const DataType& type = target.tag() == TypeTag::Map ? *target.key() : *target.element();
    for (std::uint64_t i = random.below(3); i > 0; --i) {
      removed.elements.push_back(target.tag() == TypeTag::Array ? test::random_value(type, random)
                                                                : test::random_key(type, random));
    }
    return removed;
  }
  return {};
}

/// Adds one more step into a value of `type`; returns null if there is none.
const DataType* random_step(const DataType& type, FieldUpdate& update, Random& random) {
  switch (type.tag()) {
    case TypeTag::Struct: {
      const Field& member = type.fields()[random.below(type.fields().size())];
      update.path.push_back({UpdateStep::Kind::Member, member.id, {}});
      return member.type.get();
    }
    case TypeTag::Array:
      update.path.push_back({UpdateStep::Kind::Index, static_cast<std::uint32_t>(random.below(3)), {}});
      return type.element();
    case TypeTag::Map:
      update.path.push_back({UpdateStep::Kind::Key, 0, test::random_key(*type.key(), random)});
      return type.element();
    case TypeTag::WeightedSet:
      update.path.push_back({UpdateStep::Kind::Key, 0, test::random_key(*type.element(), random)});
      return DataType::primitive(TypeTag::Int).get();
    default:
      return nullptr;
  }
}

/// Returns an update with up to `count` changes that fit the type; add() drops those that do not fit.
DocumentUpdate random_update(const DocumentType& type, const DocumentId& id, std::size_t count, Random& random) {
  DocumentUpdate update(type, id);
  update.set_create_if_missing(random.chance(0.5));
  while (count > 0) {
    FieldUpdate each;
    each.field = &type.fields()[random.below(type.fields().size())];
    const DataType* target = each.field->type.get();
    while (random.chance(0.5)) {
      const DataType* next = random_step(*target, each, random);
      if (next == nullptr) break;
      target = next;
    }
    each.action = static_cast<UpdateAction>(1 + random.below(8));
    each.operand = random_operand(*target, each.action, random);
    if (update.add(std::move(each))) --count;
  }
  return update;
}

// ---- The model: computes the new value from the old one, without regard to cost. Empty optional: the update is
// refused.

using Outcome = std::optional<FieldValue>;

template <typename T>
Outcome bounded(long double value) {
  const long double whole = std::trunc(value);
  if (whole < static_cast<long double>(std::numeric_limits<T>::min()) ||
      whole > static_cast<long double>(std::numeric_limits<T>::max())) {
    return std::nullopt;
  }
  return FieldValue(static_cast<T>(whole));
}

/// Computes in long double, whose 64 bits of mantissa hold all products of the generated numbers, except those far out
/// of range.
Outcome model_arithmetic(const DataType& type, const FieldValue& before, const FieldUpdate& update) {
  long double a = 0;
  if (const auto* x = before.get_if<std::int8_t>()) a = *x;
  if (const auto* x = before.get_if<std::int32_t>()) a = *x;
  if (const auto* x = before.get_if<std::int64_t>()) a = static_cast<long double>(*x);
  if (const auto* x = before.get_if<float>()) a = static_cast<long double>(*x);
  if (const auto* x = before.get_if<double>()) a = static_cast<long double>(*x);
  const auto* whole = update.operand.get_if<std::int64_t>();
  const long double b =
      whole != nullptr ? static_cast<long double>(*whole) : static_cast<long double>(*update.operand.get_if<double>());
  long double result = update.action == UpdateAction::Increment   ? a + b
                       : update.action == UpdateAction::Decrement ? a - b
                       : update.action == UpdateAction::Multiply  ? a * b
                                                                  : a / b;
  const bool real = type.tag() == TypeTag::Float || type.tag() == TypeTag::Double;
  if (real) {  // The operation computes with numbers of type double.
    const double x = static_cast<double>(a);
    const double y = static_cast<double>(b);
    result = static_cast<long double>(update.action == UpdateAction::Increment   ? x + y
                                      : update.action == UpdateAction::Decrement ? x - y
                                      : update.action == UpdateAction::Multiply  ? x * y
                                                                                 : x / y);
  }
  switch (type.tag()) {
    case TypeTag::Byte:
      return bounded<std::int8_t>(result);
    case TypeTag::Int:
      return bounded<std::int32_t>(result);
    case TypeTag::Long:
      return bounded<std::int64_t>(result);
    case TypeTag::Float:
      return std::isfinite(static_cast<float>(result)) ? Outcome(static_cast<float>(result)) : std::nullopt;
    default:
      return std::isfinite(static_cast<double>(result)) ? Outcome(static_cast<double>(result)) : std::nullopt;
  }
}

using Pairs = std::vector<std::pair<FieldValue, FieldValue>>;

/// Returns every kind of collection as pairs; the keys of an array are empty.
Pairs pairs_of(const FieldValue& value) {
  Pairs pairs;
  if (const auto* array = value.get_if<ArrayValue>()) {
    for (const auto& element : array->elements) pairs.emplace_back(FieldValue(), element);
  } else if (const auto* set = value.get_if<WeightedSetValue>()) {
    for (const auto& [element, weight] : set->elements) pairs.emplace_back(element, weight);
  } else if (const auto* map = value.get_if<MapValue>()) {
    pairs = map->entries;
  }
  return pairs;
}

FieldValue collection_of(TypeTag tag, const Pairs& pairs) {
  ArrayValue array;
  WeightedSetValue set;
  MapValue map{pairs};
  for (const auto& [key, value] : pairs) {
    array.elements.push_back(value);
    if (tag == TypeTag::WeightedSet) set.elements.emplace_back(key, *value.get_if<std::int32_t>());
  }
  if (tag == TypeTag::Array) return array;
  return tag == TypeTag::WeightedSet ? FieldValue(set) : FieldValue(map);
}

Outcome model_act(const DataType& type, const FieldValue& before, const FieldUpdate& update) {
  if (update.action == UpdateAction::Assign || update.action == UpdateAction::Clear) return update.operand;
  if (is_arithmetic(update.action)) return model_arithmetic(type, before, update);
  Pairs pairs = pairs_of(before);
  if (update.action == UpdateAction::Remove) {
    if (before.is_none()) return before;
    Pairs kept;
    for (const auto& pair : pairs) {
      bool removed = false;
      for (const auto& each : update.operand.get_if<ArrayValue>()->elements) {
        removed = removed || each == (type.tag() == TypeTag::Array ? pair.second : pair.first);
      }
      if (!removed) kept.push_back(pair);
    }
    return collection_of(type.tag(), kept);
  }
  for (const auto& added : pairs_of(update.operand)) {
    bool found = false;
    for (auto& pair : pairs) {
      if (type.tag() == TypeTag::Array || !(pair.first == added.first)) continue;
      pair.second = added.second;
      found = true;
    }
    if (!found) pairs.push_back(added);
  }
  return collection_of(type.tag(), pairs);
}

Outcome model(const DataType& type, const FieldValue& before, const FieldUpdate& update, std::size_t depth) {
  if (depth == update.path.size()) return model_act(type, before, update);
  const UpdateStep& step = update.path[depth];
  const bool takes = update.action == UpdateAction::Clear || update.action == UpdateAction::Remove;
  if (step.kind == UpdateStep::Kind::Member) {
    if (before.is_none() && takes) {
      // A missing array position further down would refuse the update, but there is no array here.
      return before;
    }
    StructValue members;
    StructValue rest;
    if (const auto* given = before.get_if<StructValue>()) members = *given;
    FieldValue member;
    for (const auto& [id, value] : members.members) {
      if (id == step.number) {
        member = value;
      } else {
        rest.set(id, value);
      }
    }
    const Outcome changed = model(*type.field_by_id(step.number)->type, member, update, depth + 1);
    if (!changed) return std::nullopt;
    if (!changed->is_none()) rest.set(step.number, *changed);
    return rest;
  }
  if (before.is_none() && takes && step.kind == UpdateStep::Kind::Key) return before;
  const DataType& next = type.tag() == TypeTag::WeightedSet ? *DataType::primitive(TypeTag::Int) : *type.element();
  Pairs pairs = pairs_of(before);
  std::size_t at = 0;
  while (at < pairs.size() && (step.kind == UpdateStep::Kind::Key ? !(pairs[at].first == step.key) : at != step.number))
    ++at;
  if (at == pairs.size()) {
    if (step.kind == UpdateStep::Kind::Index) return std::nullopt;
    const Outcome made = model(next, FieldValue(), update, depth + 1);
    if (!made) return std::nullopt;
    if (!made->is_none()) pairs.emplace_back(step.key, *made);
  } else {
    const Outcome changed = model(next, pairs[at].second, update, depth + 1);
    if (!changed) return std::nullopt;
    pairs[at].second = *changed;
    if (changed->is_none()) pairs.erase(pairs.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return collection_of(type.tag(), pairs);
}

std::optional<Document> model_apply(const DocumentUpdate& update, Document document) {
  for (const FieldUpdate& each : update.updates()) {
    const FieldValue* before = document.get(*each.field);
    const Outcome after = model(*each.field->type, before == nullptr ? FieldValue() : *before, each, 0);
    if (!after) return std::nullopt;
    document.remove(each.field->name);
    if (!after->is_none()) REQUIRE(document.set(*each.field, *after));
  }
  return document;
}

}  // namespace

TEST_CASE("update: random updates read back from JSON and from their bytes") {
  const auto repo = test::sample_repo();
  Random random(20261);
  for (int round = 0; round < 3000; ++round) {
    const DocumentUpdate update =
        random_update(*repo->find("song"), test::id_of("id:m:song::x"), 1 + random.below(6), random);
    const auto json = update.to_json();
    REQUIRE(json);
    INFO(*json);
    const auto from_json = DocumentUpdate::from_json(*repo, *json);
    INFO(from_json.status());
    REQUIRE(from_json);
    REQUIRE(*from_json == update);
    const auto decoded = DocumentUpdate::decode(*repo, update.encode());
    INFO(decoded.status());
    REQUIRE(decoded);
    REQUIRE(*decoded == update);
    REQUIRE(decoded->encode() == update.encode());
  }
}

TEST_CASE("update: applying a random update does what the model does, to the byte") {
  const auto repo = test::sample_repo();
  Random random(77);
  int applied = 0;
  int refused = 0;
  for (int round = 0; round < 6000; ++round) {
    const auto id = test::id_of("id:m:song::x");
    const Document document = test::random_document(*repo->find("song"), id, random);
    const DocumentUpdate update = random_update(*repo->find("song"), id, 1 + random.below(3), random);
    INFO(update.to_json().value());
    const EncodedDocument stored = encode(document);
    const auto view = DocumentView::open(*repo, stored.header, stored.body);
    REQUIRE(view);
    INFO(to_json_fields(*view).value());
    const auto expected = model_apply(update, document);
    const auto result = update.apply_to(&*view);
    INFO(result.status());
    REQUIRE(result.has_value() == expected.has_value());
    if (!expected) {
      ++refused;
      REQUIRE(result.error().code() == StatusCode::InvalidField);
      continue;
    }
    ++applied;
    REQUIRE(*result == encode(*expected));
    REQUIRE(validate(*repo, result->header, result->body));
  }
  CHECK(applied > 2000);
  CHECK(refused > 500);
}

TEST_CASE("update: garbled bytes do no harm, and what is read can be written and applied") {
  const auto repo = test::sample_repo();
  Random random(5);
  const EncodedDocument stored = encode(test::full_song(*repo));
  const auto view = DocumentView::open(*repo, stored.header, stored.body);
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    const DocumentUpdate update =
        random_update(*repo->find("song"), test::id_of("id:music:song:n=7:full"), 1 + random.below(4), random);
    std::string bytes = update.encode();
    for (std::uint64_t changes = 1 + random.below(3); changes > 0; --changes) {
      bytes[random.below(bytes.size())] = static_cast<char>(random.below(256));
    }
    const std::vector<char> exact(bytes.begin(), bytes.end());
    const auto decoded = DocumentUpdate::decode(*repo, {exact.data(), exact.size()});
    if (!decoded) continue;
    ++accepted;
    REQUIRE(DocumentUpdate::decode(*repo, decoded->encode()).has_value());
    if (const auto result = decoded->apply_to(&*view)) REQUIRE(validate(*repo, result->header, result->body));
  }
  CHECK(accepted > 100);
}

}  // namespace fjord
