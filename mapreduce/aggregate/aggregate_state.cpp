#include "aggregate_state.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <new>
#include <utility>

#include "columns/bucket_columns.h"
#include "exact_sum.h"
#include "fjord/common/check.h"
#include "sketches.h"

namespace fjord::mapreduce {
namespace {

using F = AggregateFunction;

Status malformed() { return Status(StatusCode::Corruption, "malformed partial result of an aggregation"); }

/// A 128-bit integer with the alignment of a 64-bit one.
struct Integer128 {
  std::uint64_t low = 0;
  std::int64_t high = 0;

  __int128 get() const {
    const auto shifted = static_cast<unsigned __int128>(static_cast<__int128>(high)) << 64;
    return static_cast<__int128>(shifted | low);
  }
  void set(__int128 value) {
    low = static_cast<std::uint64_t>(value);
    high = static_cast<std::int64_t>(value >> 64);
  }
};

/// For sums of integers only: rejects fractions.
struct NoFractions {
  static constexpr bool kIsThere = false;
  static bool add(double) { return false; }
  static __int128 units() { return 0; }
};

/// The sum of numbers of usual size as a multiple of 2^-64.
struct Fractions {
  static constexpr bool kIsThere = true;
  Integer128 sum;

  /// Returns false and adds nothing if the number or the sum does not fit.
  bool add(double number) {
    constexpr double kLimit = 0x1p40;
    if (!(std::fabs(number) < kLimit)) return false;
    const double scaled = number * 0x1p64;  // exact, because the factor is a power of two
    const auto more = static_cast<__int128>(scaled);
    __int128 total = 0;
    if (static_cast<double>(more) != scaled || __builtin_add_overflow(sum.get(), more, &total)) return false;
    sum.set(total);
    return true;
  }
  __int128 units() const { return sum.get(); }
};

/// A sum that does not depend on the order of additions. Integers are summed in `integers`, numbers of usual size in
/// `small`, all others in the slower `wide`.
template <typename Small>
struct SumState {
  static constexpr int kFixedExponent = -64;

  std::uint64_t count = 0;
  ExactSum* wide = nullptr;
  Integer128 integers;
  [[no_unique_address]] Small small;

  void add(const ScalarView& value, std::size_t& heap) {
    if (value.kind == ScalarView::Kind::Integer) return add_integer(value.integer);
    ++count;
    if (!small.add(value.number)) add_wide(heap).add(value.number);
  }
  void add_integer(std::int64_t value) {
    ++count;
    integers.set(integers.get() + value);
  }
  ExactSum& add_wide(std::size_t& heap) {
    if (wide == nullptr) {
      wide = new ExactSum();
      heap += sizeof(ExactSum);
    }
    return *wide;
  }
  /// True if `wide` or `small` holds a sum of numbers that are not integers. The sum in `wide` may be 0.
  bool has_fractions() const { return wide != nullptr || small.units() != 0; }
  /// Returns the sum of the numbers that are not integers.
  ExactSum fractions() const {
    ExactSum sum;
    if (wide != nullptr) sum = *wide;
    sum.add_scaled(small.units(), kFixedExponent);
    return sum;
  }
  ExactSum total() const {
    ExactSum sum = fractions();
    sum.add_scaled(integers.get(), 0);
    return sum;
  }
  void encode(std::string& out) const {
    put_varint(out, count);
    put_int128(out, integers.get());
    if (!has_fractions()) {
      out.push_back(0);
      return;
    }
    const ExactSum rest = fractions();
    const bool has_rest = !(rest == ExactSum());
    out.push_back(has_rest ? 1 : 0);
    if (has_rest) rest.append_to(out);
  }
  bool merge(ByteReader& in, std::size_t& heap) {
    const std::uint64_t more = in.varint();
    const __int128 more_integers = read_int128(in);
    const auto has_rest = in.fixed<std::uint8_t>();
    if (!in.ok() || has_rest > 1) return false;
    if (has_rest == 1) {
      ExactSum rest;
      if (!rest.read(in)) return false;
      add_wide(heap).add(rest);
    }
    count += more;
    integers.set(integers.get() + more_integers);
    return true;
  }
  bool retract(ByteReader& in, std::size_t& heap) {
    const std::uint64_t less = in.varint();
    const __int128 less_integers = read_int128(in);
    const auto has_rest = in.fixed<std::uint8_t>();
    if (!in.ok() || has_rest > 1 || less > count) return false;
    if (has_rest == 1) {
      ExactSum rest;
      if (!rest.read(in) || !add_wide(heap).subtract(rest)) return false;
    }
    count -= less;
    integers.set(integers.get() - less_integers);
    return true;
  }
};

using IntegerSum = SumState<NoFractions>;
using NumberSum = SumState<Fractions>;

struct ExtremeState {
  ScalarView value;  ///< If it is a text, a view of `text`.
  std::string* text = nullptr;

  void set(const ScalarView& to, std::size_t& heap) {
    value = to;
    if (to.kind != ScalarView::Kind::String) return;
    if (text == nullptr) {
      text = new std::string();
      heap += sizeof(std::string);
    }
    const std::size_t before = text->capacity();
    text->assign(to.string);
    heap += text->capacity() - before;
    value.string = *text;
  }
  void offer(const ScalarView& other, bool wants_max, std::size_t& heap) {
    if (other.kind == ScalarView::Kind::Absent) return;
    if (value.kind != ScalarView::Kind::Absent) {
      const int difference = compare(other, value);
      if (wants_max ? difference <= 0 : difference >= 0) return;
    }
    set(other, heap);
  }
};

/// A sketch that is made when the first value arrives.
template <typename Sketch>
struct Lazy {
  Sketch* sketch = nullptr;

  /// Calls `f` with the sketch and adds the sketch's growth in bytes to `heap`.
  template <typename Function>
  bool change(std::size_t& heap, Function f) {
    if (sketch == nullptr) {
      sketch = new Sketch();
      heap += sizeof(Sketch);
    }
    const std::size_t before = sketch->bytes();
    const bool ok = f(*sketch);
    heap += sketch->bytes() - before;
    return ok;
  }
};

using DistinctState = Lazy<DistinctSketch>;
using QuantileState = Lazy<QuantileSketch>;
using HistogramState = Lazy<HistogramCounts>;
using TopState = Lazy<ValueCounts>;

/// Calls `f` with a null pointer whose type is that of the aggregate's state.
template <typename Function>
decltype(auto) with_state(const AggregatePlan::Aggregate& aggregate, Function f) {
  switch (aggregate.function) {
    case F::Count:
      break;
    case F::Sum:
    case F::Avg:
      if (aggregate.is_integer) return f(static_cast<IntegerSum*>(nullptr));
      return f(static_cast<NumberSum*>(nullptr));
    case F::Min:
    case F::Max:
      return f(static_cast<ExtremeState*>(nullptr));
    case F::Distinct:
      return f(static_cast<DistinctState*>(nullptr));
    case F::Quantile:
      return f(static_cast<QuantileState*>(nullptr));
    case F::Histogram:
      return f(static_cast<HistogramState*>(nullptr));
    case F::Top:
      return f(static_cast<TopState*>(nullptr));
  }
  return f(static_cast<std::uint64_t*>(nullptr));
}

template <typename T>
T& at(char* state) {
  return *std::launder(reinterpret_cast<T*>(state));
}
template <typename T>
const T& at(const char* state) {
  return *std::launder(reinterpret_cast<const T*>(state));
}

void release(std::uint64_t&) {}
template <typename Small>
void release(SumState<Small>& state) {
  delete state.wide;
}
void release(ExtremeState& state) { delete state.text; }
template <typename Sketch>
void release(Lazy<Sketch>& state) {
  delete state.sketch;
}

Status too_many(const AggregatePlan::Aggregate& aggregate) {
  if (aggregate.function == F::Histogram) {
    return Status(StatusCode::TooLarge,
                  "a histogram of more than " + std::to_string(HistogramCounts::kBinsMax) + " bins: take wider ones");
  }
  return Status(StatusCode::TooLarge,
                "top(k,E) of more than " + std::to_string(ValueCounts::kValuesMax) +
                    " different values in a group: group by E, order by count and limit the result instead");
}

template <typename Sketch>
Status merge_sketch(const AggregatePlan::Aggregate& aggregate, Lazy<Sketch>& state, ByteReader& in, std::size_t& heap) {
  Sketch other;
  if (!other.read(in)) return malformed();
  const bool fits = state.change(heap, [&](Sketch& sketch) {
    if constexpr (std::is_same_v<decltype(sketch.add(other)), bool>) {
      return sketch.add(other);
    } else {
      sketch.add(other);
      return true;
    }
  });
  return fits ? Status::ok() : too_many(aggregate);
}

/// Subtracts a sketch. An empty sketch is deleted, so that the state equals one that never had a value.
template <typename Sketch>
bool retract_sketch(Lazy<Sketch>& state, ByteReader& in, std::size_t& heap) {
  Sketch other;
  if (!other.read(in) || state.sketch == nullptr) return false;
  if (!state.change(heap, [&](Sketch& sketch) { return sketch.subtract(other); })) return false;
  if (state.sketch->is_empty()) {
    heap -= sizeof(Sketch) + state.sketch->bytes();
    delete std::exchange(state.sketch, nullptr);
  }
  return true;
}

/// Calls `f` with the state of a sum or an average.
template <typename State, typename Function>
decltype(auto) with_sum(const AggregatePlan::Aggregate& aggregate, State* state, Function f) {
  return aggregate.is_integer ? f(at<IntegerSum>(state)) : f(at<NumberSum>(state));
}

template <typename Small>
void write_sum(const SumState<Small>& state, JsonWriter& json) {
  const __int128 integers = state.integers.get();
  if (state.count == 0) {
    json.Null();
  } else if (Small::kIsThere || state.has_fractions()) {
    write_number(json, state.total().value());
  } else if (integers == static_cast<std::int64_t>(integers)) {
    json.Int64(static_cast<std::int64_t>(integers));
  } else {
    const std::string digits = int128_text(integers);
    json.RawValue(digits.data(), digits.size(), rapidjson::kNumberType);
  }
}

template <typename Small>
void write_average(const SumState<Small>& state, JsonWriter& json) {
  if (state.count == 0) {
    json.Null();
  } else if (!state.has_fractions() || state.fractions() == ExactSum()) {
    write_number(json, divide_rounded(state.integers.get(), state.count));
  } else {
    write_number(json, state.total().value() / static_cast<double>(state.count));
  }
}

void write_distinct(const DistinctState& state, JsonWriter& json) {
  if (state.sketch == nullptr || state.sketch->is_exact()) {
    json.Uint64(state.sketch == nullptr ? 0 : state.sketch->estimate());
    return;
  }
  json.StartObject();
  json.Key("estimate");
  json.Uint64(state.sketch->estimate());
  json.Key("standard_error");
  json.Double(DistinctSketch::kError);
  json.EndObject();
}

void write_quantile(const QuantileState& state, const AggregatePlan::Aggregate& aggregate, JsonWriter& json) {
  const ScalarView value =
      state.sketch == nullptr ? ScalarView() : state.sketch->quantile(as_double(aggregate.parameter));
  if (state.sketch == nullptr || state.sketch->is_exact()) {
    write_scalar(json, value, false);
    return;
  }
  json.StartObject();
  json.Key("estimate");
  write_scalar(json, value, false);
  json.Key("relative_error");
  json.Double(QuantileSketch::kRelativeError);
  json.EndObject();
}

}  // namespace

AggregateStates::AggregateStates(const AggregatePlan& plan) : plan_(plan) {
  for (const AggregatePlan::Aggregate& aggregate : plan.aggregates()) {
    with_state(aggregate, [&](auto* type) {
      using State = std::remove_pointer_t<decltype(type)>;
      size_ = (size_ + alignof(State) - 1) / alignof(State) * alignof(State);
      offsets_.push_back(size_);
      if (aggregate.input < 0) documents_offset_ = size_;
      size_ += sizeof(State);
    });
  }
}

void AggregateStates::construct(char* states) const {
  for (std::size_t i = 0; i < offsets_.size(); ++i) {
    with_state(plan_.aggregates()[i], [&](auto* type) {
      using State = std::remove_pointer_t<decltype(type)>;
      new (states + offsets_[i]) State();
    });
  }
}

void AggregateStates::destroy(char* states) const {
  for (std::size_t i = 0; i < offsets_.size(); ++i) {
    with_state(plan_.aggregates()[i], [&](auto* type) {
      using State = std::remove_pointer_t<decltype(type)>;
      release(at<State>(states + offsets_[i]));
    });
  }
}

Status AggregateStates::add(char* states, std::span<const ScalarView> inputs, std::size_t& heap) const {
  for (std::size_t i = 0; i < offsets_.size(); ++i) {
    const AggregatePlan::Aggregate& aggregate = plan_.aggregates()[i];
    char* const state = states + offsets_[i];
    if (aggregate.input < 0) {
      ++at<std::uint64_t>(state);
    } else {
      FJORD_TRY(add_one(aggregate, state, inputs[static_cast<std::size_t>(aggregate.input)], heap));
    }
  }
  return Status::ok();
}

Status AggregateStates::add_one(const AggregatePlan::Aggregate& aggregate, char* state, const ScalarView& value,
                                std::size_t& heap) {
  if (value.kind == ScalarView::Kind::Absent) return Status::ok();
  const bool is_number = value.kind != ScalarView::Kind::String;
  bool ok = true;
  switch (aggregate.function) {
    case F::Count:
      ++at<std::uint64_t>(state);
      break;
    case F::Sum:
    case F::Avg:
      if (is_number) with_sum(aggregate, state, [&](auto& sum) { sum.add(value, heap); });
      break;
    case F::Min:
    case F::Max:
      at<ExtremeState>(state).offer(value, aggregate.function == F::Max, heap);
      break;
    case F::Distinct:
      at<DistinctState>(state).change(heap, [&](DistinctSketch& sketch) { return sketch.add(value), true; });
      break;
    case F::Quantile:
      if (!is_number) break;
      at<QuantileState>(state).change(heap, [&](QuantileSketch& sketch) { return sketch.add(value), true; });
      break;
    case F::Histogram:
      if (!is_number) break;
      ok = at<HistogramState>(state).change(
          heap, [&](HistogramCounts& counts) { return counts.add(value, aggregate.parameter); });
      break;
    case F::Top:
      ok = at<TopState>(state).change(heap, [&](ValueCounts& counts) { return counts.add(value); });
      break;
  }
  return ok ? Status::ok() : too_many(aggregate);
}

bool AggregateStates::may_fail() const {
  return std::any_of(plan_.aggregates().begin(), plan_.aggregates().end(), [](const AggregatePlan::Aggregate& one) {
    return one.function == F::Histogram || one.function == F::Top;
  });
}

void AggregateStates::add_rows(std::size_t aggregate, std::span<char* const> groups, const Column* column,
                               std::size_t first, std::size_t& heap) const {
  const std::size_t offset = offsets_[aggregate];
  const AggregatePlan::Aggregate& one = plan_.aggregates()[aggregate];
  if (column == nullptr) {
    for (char* const group : groups) ++at<std::uint64_t>(group + offset);
    return;
  }
  const std::int64_t* const integers = column->integers();
  if (integers != nullptr && (one.function == F::Sum || one.function == F::Avg)) {
    for (std::size_t i = 0; i < groups.size(); ++i) {
      with_sum(one, groups[i] + offset, [&](auto& sum) { sum.add_integer(integers[first + i]); });
    }
    return;
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const Status status = add_one(one, groups[i] + offset, column->at(first + i), heap);
    FJORD_CHECK(status.is_ok());
  }
}

void AggregateStates::encode(const char* states, std::string& out) const {
  const auto sketch = [&](const auto& lazy) {
    out.push_back(lazy.sketch == nullptr ? 0 : 1);
    if (lazy.sketch != nullptr) lazy.sketch->append_to(out);
  };
  for (std::size_t i = 0; i < offsets_.size(); ++i) {
    const char* const state = states + offsets_[i];
    switch (plan_.aggregates()[i].function) {
      case F::Count:
        put_varint(out, at<std::uint64_t>(state));
        break;
      case F::Sum:
      case F::Avg:
        with_sum(plan_.aggregates()[i], state, [&](const auto& sum) { sum.encode(out); });
        break;
      case F::Min:
      case F::Max:
        put_scalar(out, at<ExtremeState>(state).value);
        break;
      case F::Distinct:
        sketch(at<DistinctState>(state));
        break;
      case F::Quantile:
        sketch(at<QuantileState>(state));
        break;
      case F::Histogram:
        sketch(at<HistogramState>(state));
        break;
      case F::Top:
        sketch(at<TopState>(state));
        break;
    }
  }
}

Status AggregateStates::merge(char* states, std::string_view encoded, std::size_t& heap) const {
  ByteReader in(encoded);
  for (std::size_t i = 0; i < offsets_.size(); ++i) {
    FJORD_TRY(merge_one(plan_.aggregates()[i], states + offsets_[i], in, heap));
  }
  return in.at_end() ? Status::ok() : malformed();
}

Status AggregateStates::merge_one(const AggregatePlan::Aggregate& aggregate, char* state, ByteReader& in,
                                  std::size_t& heap) {
  switch (aggregate.function) {
    case F::Count:
      at<std::uint64_t>(state) += in.varint();
      return in.ok() ? Status::ok() : malformed();
    case F::Sum:
    case F::Avg: {
      const bool ok = with_sum(aggregate, state, [&](auto& sum) { return sum.merge(in, heap); });
      return ok ? Status::ok() : malformed();
    }
    case F::Min:
    case F::Max: {
      ScalarView value;
      if (!read_scalar(in, value)) return malformed();
      at<ExtremeState>(state).offer(value, aggregate.function == F::Max, heap);
      return Status::ok();
    }
    default:
      break;
  }
  const auto has_sketch = in.fixed<std::uint8_t>();
  if (!in.ok() || has_sketch > 1) return malformed();
  if (has_sketch == 0) return Status::ok();
  switch (aggregate.function) {
    case F::Distinct:
      return merge_sketch(aggregate, at<DistinctState>(state), in, heap);
    case F::Quantile:
      return merge_sketch(aggregate, at<QuantileState>(state), in, heap);
    case F::Histogram:
      return merge_sketch(aggregate, at<HistogramState>(state), in, heap);
    default:
      return merge_sketch(aggregate, at<TopState>(state), in, heap);
  }
}

std::optional<std::uint64_t> AggregateStates::documents(const char* states) const {
  if (!documents_offset_) return std::nullopt;
  return at<std::uint64_t>(states + *documents_offset_);
}

bool AggregateStates::retract(char* states, std::string_view encoded, std::size_t& heap) const {
  ByteReader in(encoded);
  for (std::size_t i = 0; i < offsets_.size(); ++i) {
    if (!retract_one(plan_.aggregates()[i], states + offsets_[i], in, heap)) return false;
  }
  return in.at_end();
}

bool AggregateStates::retract_one(const AggregatePlan::Aggregate& aggregate, char* state, ByteReader& in,
                                  std::size_t& heap) {
  switch (aggregate.function) {
    case F::Count: {
      const std::uint64_t less = in.varint();
      if (!in.ok() || less > at<std::uint64_t>(state)) return false;
      at<std::uint64_t>(state) -= less;
      return true;
    }
    case F::Sum:
    case F::Avg:
      return with_sum(aggregate, state, [&](auto& sum) { return sum.retract(in, heap); });
    case F::Min:
    case F::Max: {
      // Removing any value but the extreme leaves the extreme as it is. The extreme cannot be removed: the next one is
      // not known.
      ScalarView value;
      if (!read_scalar(in, value)) return false;
      return value.kind == ScalarView::Kind::Absent || compare(value, at<ExtremeState>(state).value) != 0;
    }
    default:
      break;
  }
  const auto has_sketch = in.fixed<std::uint8_t>();
  if (!in.ok() || has_sketch > 1) return false;
  if (has_sketch == 0) return true;
  switch (aggregate.function) {
    case F::Quantile:
      return retract_sketch(at<QuantileState>(state), in, heap);
    case F::Histogram:
      return retract_sketch(at<HistogramState>(state), in, heap);
    case F::Top:
      return retract_sketch(at<TopState>(state), in, heap);
    default:
      return false;  // a DistinctSketch does not count how often it got a value, so none can be removed
  }
}

void AggregateStates::write(const char* states, JsonWriter& json) const {
  for (std::size_t i = 0; i < offsets_.size(); ++i) {
    const AggregatePlan::Aggregate& aggregate = plan_.aggregates()[i];
    const char* const state = states + offsets_[i];
    switch (aggregate.function) {
      case F::Count:
        json.Uint64(at<std::uint64_t>(state));
        break;
      case F::Sum:
        with_sum(aggregate, state, [&](const auto& sum) { write_sum(sum, json); });
        break;
      case F::Avg:
        with_sum(aggregate, state, [&](const auto& sum) { write_average(sum, json); });
        break;
      case F::Min:
      case F::Max:
        write_scalar(json, at<ExtremeState>(state).value, aggregate.is_bool);
        break;
      case F::Distinct:
        write_distinct(at<DistinctState>(state), json);
        break;
      case F::Quantile:
        write_quantile(at<QuantileState>(state), aggregate, json);
        break;
      case F::Histogram: {
        const HistogramCounts none;
        const HistogramCounts* counts = at<HistogramState>(state).sketch;
        (counts == nullptr ? none : *counts).write(json, aggregate.parameter);
        break;
      }
      case F::Top: {
        const ValueCounts none;
        const ValueCounts* counts = at<TopState>(state).sketch;
        (counts == nullptr ? none : *counts)
            .write(json, static_cast<std::size_t>(aggregate.parameter.integer), aggregate.is_bool);
        break;
      }
    }
  }
}

}  // namespace fjord::mapreduce
