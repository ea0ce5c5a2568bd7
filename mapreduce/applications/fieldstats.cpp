#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>
#include <string>
#include <vector>

#include "aggregate/exact_sum.h"
#include "applications.h"
#include "fjord/common/coding.h"

namespace fjord::mapreduce {
namespace {

using JsonWriter = rapidjson::Writer<rapidjson::StringBuffer>;

/// Count, sum, minimum and maximum of integers: 40 bytes, updated in place.
struct IntegerStats {
  static constexpr std::size_t kBytes = 40;

  std::uint64_t count = 0;
  __int128 sum = 0;
  std::int64_t min = std::numeric_limits<std::int64_t>::max();
  std::int64_t max = std::numeric_limits<std::int64_t>::min();

  static bool read(std::string_view bytes, IntegerStats& into) {
    if (bytes.size() != kBytes) return false;
    into.count = load_fixed<std::uint64_t>(bytes.data());
    into.sum = load_fixed<__int128>(bytes.data() + 8);
    into.min = load_fixed<std::int64_t>(bytes.data() + 24);
    into.max = load_fixed<std::int64_t>(bytes.data() + 32);
    return true;
  }
  void store(char* at) const {
    store_fixed(at, count);
    store_fixed(at + 8, sum);
    store_fixed(at + 24, min);
    store_fixed(at + 32, max);
  }
  void merge(const IntegerStats& other) {
    count += other.count;
    sum += other.sum;
    min = std::min(min, other.min);
    max = std::max(max, other.max);
  }
  void write(JsonWriter& json) const {
    const std::string digits = int128_text(sum);
    json.Key("sum");
    json.RawValue(digits.data(), digits.size(), rapidjson::kNumberType);
    json.Key("min");
    json.Int64(min);
    json.Key("max");
    json.Int64(max);
    json.Key("avg");
    json.Double(divide_rounded(sum, count));
  }
};

/// Count, sum, minimum and maximum of doubles. The sum is exact, so its bytes do not depend on the order of the values.
struct DoubleStats {
  std::uint64_t count = 0;
  double min = std::numeric_limits<double>::infinity();
  double max = -std::numeric_limits<double>::infinity();
  bool any_nan = false;
  ExactSum sum;

  void add(double value) {
    ++count;
    if (value == 0) value = 0;  // makes -0 and 0 the same, so that the bytes do not depend on the order
    any_nan = any_nan || std::isnan(value);
    if (!std::isnan(value)) {
      min = std::min(min, value);
      max = std::max(max, value);
    }
    sum.add(value);
  }
  void merge(const DoubleStats& other) {
    count += other.count;
    min = std::min(min, other.min);
    max = std::max(max, other.max);
    any_nan = any_nan || other.any_nan;
    sum.add(other.sum);
  }
  static bool read(std::string_view bytes, DoubleStats& into) {
    if (bytes.size() == sizeof(double)) {  // a single value, as map emits it
      into.add(load_fixed<double>(bytes.data()));
      return true;
    }
    ByteReader in(bytes);
    into.count = in.fixed<std::uint64_t>();
    into.min = in.fixed<double>();
    into.max = in.fixed<double>();
    into.any_nan = in.fixed<std::uint8_t>() != 0;
    return into.sum.read(in) && in.at_end();
  }
  void encode(std::string& out) const {
    out.clear();
    put_fixed(out, count);
    put_fixed(out, min);
    put_fixed(out, max);
    put_fixed<std::uint8_t>(out, any_nan ? 1 : 0);
    sum.append_to(out);
  }
  void write(JsonWriter& json) const {
    const auto number = [&](const char* name, double value) {
      json.Key(name);
      if (std::isfinite(value)) {
        json.Double(value);
      } else {
        json.Null();
      }
    };
    const double total = sum.value();
    number("sum", total);
    number("min", any_nan ? std::nan("") : min);
    number("max", any_nan ? std::nan("") : max);
    number("avg", total / static_cast<double>(count));
  }
};

class FieldStats final : public Application, public ValueFunctions {
 public:
  Status configure(const ApplicationParameters& parameters, const DocumentType& type) override {
    FJORD_TRY_ASSIGN(group_, scalar_field(type, parameters.text("group")));
    FJORD_TRY_ASSIGN(value_, number_field(type, parameters.text("value")));
    const std::string& missing = parameters.text("missing");
    if (missing != "skip" && missing != "error") {
      return Status(StatusCode::InvalidArgument, "missing=" + missing + ": it is skip or error");
    }
    missing_is_error_ = missing == "error";
    const TypeTag tag = value_->type->tag();
    is_double_ = tag == TypeTag::Float || tag == TypeTag::Double;
    const Field* const fields[] = {group_, value_};
    values_ = missing_is_error_ ? std::vector<ValueExpression>() : values_of(fields, type, parameters.types());
    return Status::ok();
  }

  ValueFunctions* by_values() override { return values_.empty() ? nullptr : this; }
  std::span<const ValueExpression> values() const override { return values_; }
  void map_values(std::span<const ScalarView> values, Emitter& emitter) override {
    const ScalarView& group = values[0];
    const ScalarView& value = values[1];
    if (group.kind == ScalarView::Kind::Absent || value.kind == ScalarView::Kind::Absent) return;
    emit_integer(value_text(group, *group_, scratch_), value.integer, emitter);
  }
  Status map(const DocumentView& document, Emitter& emitter) override {
    const auto group = document.field(*group_);
    const auto value = document.field(*value_);
    if (!group || !value) {
      if (!missing_is_error_) return Status::ok();
      return Status(StatusCode::InvalidField, "it has no " + (group ? value_ : group_)->name);
    }
    const std::string_view key = scalar_text(*group, scratch_);
    if (is_double_) {
      char bytes[sizeof(double)];
      store_fixed(bytes, value->as_double());
      emitter.emit(key, {bytes, sizeof(bytes)});
    } else {
      emit_integer(key, value->as_int64(), emitter);
    }
    return Status::ok();
  }

  bool combine(std::string_view, std::string& into, std::string_view value) override {
    if (!is_double_) {
      IntegerStats a, b;
      if (!IntegerStats::read(into, a) || !IntegerStats::read(value, b)) return false;
      a.merge(b);
      a.store(into.data());
      return true;
    }
    DoubleStats a, b;
    if (!DoubleStats::read(into, a) || !DoubleStats::read(value, b)) return false;
    a.merge(b);
    a.encode(into);
    return true;
  }

  Status reduce(std::string_view, std::span<const std::string_view> values, ResultEmitter& result) override {
    return is_double_ ? finish<DoubleStats>(values, result) : finish<IntegerStats>(values, result);
  }

 private:
  static void emit_integer(std::string_view key, std::int64_t number, Emitter& emitter) {
    char bytes[IntegerStats::kBytes];
    IntegerStats{1, number, number, number}.store(bytes);
    emitter.emit(key, {bytes, sizeof(bytes)});
  }

  template <typename Stats>
  static Status finish(std::span<const std::string_view> values, ResultEmitter& result) {
    Stats total;
    for (const std::string_view value : values) {
      Stats one;
      if (!Stats::read(value, one)) return Status(StatusCode::Corruption, "malformed tuple of fieldstats");
      total.merge(one);
    }
    rapidjson::StringBuffer buffer;
    JsonWriter json(buffer);
    json.StartObject();
    json.Key("count");
    json.Uint64(total.count);
    total.write(json);
    json.EndObject();
    result.emit(std::string(buffer.GetString(), buffer.GetSize()));
    return Status::ok();
  }

  const Field* group_ = nullptr;
  const Field* value_ = nullptr;
  bool is_double_ = false;
  bool missing_is_error_ = false;
  std::vector<ValueExpression> values_;  ///< Empty: documents are needed.
  std::string scratch_;
};

}  // namespace

ApplicationInfo fieldstats_info() {
  return {
      "fieldstats",
      "Statistics of a number by the value of another field. One result a group: "
      "{\"count\",\"sum\",\"min\",\"max\",\"avg\"}. Only documents that have both fields count. Integers are summed "
      "exactly, with as many digits as it takes; sums of float and double fields are the exact sum rounded once, "
      "whatever the order (as Python's math.fsum), and null where a value or the sum is infinite or not a number.",
      {{"group", "The field that tells the groups apart: a string, number or bool.", std::nullopt},
       {"value", "The field whose statistics are wanted: int, long, byte, float or double.", std::nullopt},
       {"missing",
        "What becomes of documents without one of the fields: skip, or error, which makes each of them a dead "
        "letter of the job.",
        "skip"}},
      [] { return std::make_unique<FieldStats>(); }};
}

}  // namespace fjord::mapreduce
