#include "sketches.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <limits>

#include "fjord/common/hash.h"

namespace fjord::mapreduce {
namespace {

/// Adds to the count of `key` in a vector of pairs sorted by key.
template <typename Key>
void add_sorted(std::vector<std::pair<Key, std::uint64_t>>& counts, Key key, std::uint64_t count) {
  if (!counts.empty() && counts.back().first < key) {
    counts.emplace_back(key, count);
    return;
  }
  const auto at = std::lower_bound(counts.begin(), counts.end(), key,
                                   [](const auto& one, const Key& wanted) { return one.first < wanted; });
  if (at != counts.end() && at->first == key) {
    at->second += count;
  } else {
    counts.emplace(at, key, count);
  }
}

/// Subtracts from the count of `key` and removes the key when its count is 0. Returns false if the count is too small.
template <typename Key, typename Less>
bool subtract_sorted(std::vector<std::pair<Key, std::uint64_t>>& counts, const Key& key, std::uint64_t count,
                     Less less) {
  const auto at = std::lower_bound(counts.begin(), counts.end(), key,
                                   [&](const auto& one, const Key& wanted) { return less(one.first, wanted); });
  if (at == counts.end() || less(key, at->first) || at->second < count) return false;
  at->second -= count;
  if (at->second == 0) counts.erase(at);
  return true;
}

// The two series of Ertl's estimator for HyperLogLog (arXiv 1702.01284), which needs no correction tables.
double ertl_sigma(double x) {
  if (x == 1) return std::numeric_limits<double>::infinity();
  double y = 1;
  double z = x;
  for (double before = -1; z != before;) {
    x *= x;
    before = z;
    z += x * y;
    y += y;
  }
  return z;
}

double ertl_tau(double x) {
  if (x == 0 || x == 1) return 0;
  double y = 1;
  double z = 1 - x;
  for (double before = -1; z != before;) {
    x = std::sqrt(x);
    before = z;
    y *= 0.5;
    z -= (1 - x) * (1 - x) * y;
  }
  return z / 3;
}

/// A positive number as people wrote it: digits * 10^exponent. A parameter such as 0.1 is no double, and the nearest
/// double is not what was asked for.
struct Decimal {
  std::uint64_t digits = 0;  ///< At most 17 of them.
  int exponent = 0;
};

/// Returns the shortest decimal number that reads as this double.
Decimal decimal_of(double number) {
  char text[32];
  const char* const end = std::to_chars(text, text + sizeof(text), number, std::chars_format::scientific).ptr;
  Decimal decimal;
  int fraction = 0;
  const char* at = text;
  for (bool is_fraction = false; at != end && *at != 'e'; ++at) {
    if (*at == '.') {
      is_fraction = true;
      continue;
    }
    decimal.digits = decimal.digits * 10 + static_cast<unsigned>(*at - '0');
    fraction += is_fraction ? 1 : 0;
  }
  at += *(at + 1) == '+' ? 2 : 1;
  std::from_chars(at, end, decimal.exponent);
  decimal.exponent -= fraction;
  return decimal;
}

/// Returns the smallest integer that is not less than fraction * count; 0 < fraction <= 1.
std::uint64_t rank_of(double fraction, std::uint64_t count) {
  constexpr int kPowerMax = 38;  // 10^38 fits in 128 bits, and so does every product of 17 digits and a count.
  const Decimal decimal = decimal_of(fraction);
  if (-decimal.exponent > kPowerMax) return 1;
  unsigned __int128 power = 1;
  for (int i = decimal.exponent; i < 0; ++i) power *= 10;
  const auto product = static_cast<unsigned __int128>(decimal.digits) * count;
  return static_cast<std::uint64_t>(product / power + (product % power != 0 ? 1 : 0));
}

/// Returns bin * width, the double that is nearest to the exact product.
double edge_of(std::int64_t bin, double width) {
  const Decimal decimal = decimal_of(width);
  const std::string text = fmt::format("{}e{}", static_cast<__int128>(bin) * decimal.digits, decimal.exponent);
  double edge = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), edge).ec == std::errc()) return edge;
  return static_cast<double>(bin) * width;  // close to zero or too large
}

/// Returns the bin of a number: the one whose edges, as they are printed, enclose it.
std::int64_t bin_of(double number, double width) {
  constexpr double kNear = 1e-9;
  const double quotient = std::clamp(number / width, -0x1p62, 0x1p62);
  const double nearest = std::nearbyint(quotient);
  if (std::abs(quotient - nearest) > kNear * std::max(1.0, std::abs(quotient))) {
    return static_cast<std::int64_t>(std::floor(quotient));
  }
  const auto bin = static_cast<std::int64_t>(nearest);
  return edge_of(bin, width) <= number ? bin : bin - 1;
}

}  // namespace

// ------------------------------------------------------------------------------------------------------------ distinct

void DistinctSketch::add(const ScalarView& value) {
  char small[64];
  std::string large;
  std::string_view bytes;
  if (value.kind == ScalarView::Kind::String && value.string.size() < sizeof(small)) {
    small[0] = 3;
    std::copy(value.string.begin(), value.string.end(), small + 1);
    bytes = {small, value.string.size() + 1};
  } else if (value.kind == ScalarView::Kind::String) {
    large.push_back(3);
    large += value.string;
    bytes = large;
  } else {
    small[0] = value.kind == ScalarView::Kind::Integer ? 1 : 2;
    if (value.kind == ScalarView::Kind::Integer) {
      store_fixed(small + 1, value.integer);
    } else {
      store_fixed(small + 1, value.number);
    }
    bytes = {small, 9};
  }
  add(Hash{hash64(bytes, 1), hash64(bytes, 2)});
}

void DistinctSketch::add(const Hash& hash) {
  if (!registers_.empty()) {
    count(hash);
    return;
  }
  const auto at = std::lower_bound(hashes_.begin(), hashes_.end(), hash);
  if (at != hashes_.end() && *at == hash) return;
  hashes_.insert(at, hash);
  if (hashes_.size() > kExactMax) to_registers();
}

void DistinctSketch::count(const Hash& hash) {
  const std::size_t index = hash.first >> (64 - kIndexBits);
  const auto rank =
      static_cast<std::uint8_t>(std::min(std::countl_zero(hash.first << kIndexBits) + 1, 64 - int{kIndexBits} + 1));
  registers_[index] = std::max(registers_[index], rank);
}

void DistinctSketch::to_registers() {
  registers_.assign(kRegisters, 0);
  for (const Hash& hash : hashes_) count(hash);
  std::vector<Hash>().swap(hashes_);
}

void DistinctSketch::add(const DistinctSketch& other) {
  if (other.is_exact()) {
    for (const Hash& hash : other.hashes_) add(hash);
    return;
  }
  if (is_exact()) to_registers();
  for (std::size_t i = 0; i < kRegisters; ++i) registers_[i] = std::max(registers_[i], other.registers_[i]);
}

std::uint64_t DistinctSketch::estimate() const {
  if (is_exact()) return hashes_.size();
  constexpr int kRankMax = 64 - int{kIndexBits};
  std::uint64_t of_rank[kRankMax + 2] = {};
  for (const std::uint8_t rank : registers_) ++of_rank[rank];
  constexpr auto kCount = static_cast<double>(kRegisters);
  double z = kCount * ertl_tau(1 - static_cast<double>(of_rank[kRankMax + 1]) / kCount);
  for (int rank = kRankMax; rank >= 1; --rank) z = 0.5 * (z + static_cast<double>(of_rank[rank]));
  z += kCount * ertl_sigma(static_cast<double>(of_rank[0]) / kCount);
  return static_cast<std::uint64_t>(std::llround(kCount * kCount / (2 * std::log(2.0) * z)));
}

void DistinctSketch::append_to(std::string& out) const {
  put_varint(out, is_exact() ? hashes_.size() : kExactMax + 1);
  for (const Hash& hash : hashes_) {
    put_fixed(out, hash.first);
    put_fixed(out, hash.second);
  }
  for (std::size_t i = 0; i < registers_.size(); i += 4) {  // packs four registers of six bits into three bytes
    std::uint32_t four = 0;
    for (std::size_t j = 0; j < 4; ++j) four |= std::uint32_t{registers_[i + j]} << (6 * j);
    for (int byte = 0; byte < 3; ++byte) out.push_back(static_cast<char>(four >> (8 * byte)));
  }
}

bool DistinctSketch::read(ByteReader& in) {
  *this = {};
  const std::uint64_t count = in.varint();
  if (!in.ok() || count > kExactMax + 1) return false;
  if (count <= kExactMax) {
    if (in.remaining() < count * 16) return false;
    hashes_.reserve(static_cast<std::size_t>(count));
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto first = in.fixed<std::uint64_t>();
      const Hash hash{first, in.fixed<std::uint64_t>()};
      if (!hashes_.empty() && hash <= hashes_.back()) return false;
      hashes_.push_back(hash);
    }
    return in.ok();
  }
  const std::string_view packed = in.bytes(kRegisters / 4 * 3);
  if (!in.ok()) return false;
  registers_.resize(kRegisters);
  for (std::size_t i = 0; i < kRegisters; ++i) {
    const auto byte = [&](std::size_t n) { return std::uint32_t{static_cast<std::uint8_t>(packed[i / 4 * 3 + n])}; };
    const std::uint32_t four = byte(0) | byte(1) << 8 | byte(2) << 16;
    registers_[i] = static_cast<std::uint8_t>(four >> (6 * (i % 4)) & 63);
    if (registers_[i] > 64 - kIndexBits + 1) return false;
  }
  return true;
}

// ------------------------------------------------------------------------------------------------------------ quantile

std::int32_t QuantileSketch::bucket_of(double number) {
  const auto bits = std::bit_cast<std::uint64_t>(number);
  const auto magnitude = static_cast<std::int32_t>((bits & ~(std::uint64_t{1} << 63)) >> 45);
  return (bits >> 63) != 0 ? -magnitude - 1 : magnitude;
}

double QuantileSketch::middle_of(std::int32_t bucket) {
  const auto magnitude = static_cast<std::uint64_t>(bucket < 0 ? -bucket - 1 : bucket);
  const auto low = std::bit_cast<double>(magnitude << 45);
  const auto high = std::bit_cast<double>((magnitude + 1) << 45);
  const double middle = std::isfinite(high) ? low + (high - low) / 2 : low;
  return bucket < 0 ? -middle : middle;
}

void QuantileSketch::add(const ScalarView& number, std::uint64_t count) {
  count_ += count;
  if (has_buckets_) {
    add_bucket(bucket_of(as_double(number)), count);
    return;
  }
  const auto at =
      std::lower_bound(values_.begin(), values_.end(), number,
                       [](const auto& one, const ScalarView& wanted) { return compare(one.first, wanted) < 0; });
  if (at != values_.end() && compare(at->first, number) == 0) {
    at->second += count;
    return;
  }
  values_.emplace(at, number, count);
  if (values_.size() > kExactMax) to_buckets();
}

void QuantileSketch::add_bucket(std::int32_t bucket, std::uint64_t count) { add_sorted(buckets_, bucket, count); }

void QuantileSketch::to_buckets() {
  has_buckets_ = true;
  for (const auto& [value, count] : values_) add_bucket(bucket_of(as_double(value)), count);
  decltype(values_)().swap(values_);
}

void QuantileSketch::add(const QuantileSketch& other) {
  if (other.is_exact()) {
    for (const auto& [value, count] : other.values_) add(value, count);
    return;
  }
  if (is_exact()) to_buckets();
  for (const auto& [bucket, count] : other.buckets_) add_bucket(bucket, count);
  count_ += other.count_;
}

bool QuantileSketch::subtract(const QuantileSketch& other) {
  if (!is_exact() || !other.is_exact()) return false;
  for (const auto& [value, count] : other.values_) {
    const auto less = [](const ScalarView& a, const ScalarView& b) { return compare(a, b) < 0; };
    if (!subtract_sorted(values_, value, count, less)) return false;
    count_ -= count;
  }
  return true;
}

ScalarView QuantileSketch::quantile(double fraction) const {
  ScalarView result;
  if (count_ == 0) return result;
  const std::uint64_t rank = fraction > 0 ? std::clamp(rank_of(fraction, count_), std::uint64_t{1}, count_) : 1;
  std::uint64_t seen = 0;
  for (const auto& [value, count] : values_) {
    seen += count;
    if (seen >= rank) return value;
  }
  for (const auto& [bucket, count] : buckets_) {
    seen += count;
    if (seen < rank) continue;
    result.kind = ScalarView::Kind::Double;
    result.number = middle_of(bucket);
    return result;
  }
  return result;
}

void QuantileSketch::append_to(std::string& out) const {
  put_varint(out, has_buckets_ ? 1 : 0);
  put_varint(out, has_buckets_ ? buckets_.size() : values_.size());
  for (const auto& [value, count] : values_) {
    put_scalar(out, value);
    put_varint(out, count);
  }
  std::int32_t before = 0;
  for (const auto& [bucket, count] : buckets_) {
    put_signed(out, std::int64_t{bucket} - before);
    put_varint(out, count);
    before = bucket;
  }
}

bool QuantileSketch::read(ByteReader& in) {
  *this = {};
  const std::uint64_t form = in.varint();
  const std::uint64_t size = in.varint();
  if (!in.ok() || form > 1 || size > in.remaining()) return false;
  has_buckets_ = form == 1;
  if (!has_buckets_ && size > kExactMax) return false;
  std::int64_t bucket = 0;
  for (std::uint64_t i = 0; i < size; ++i) {
    ScalarView value;
    if (has_buckets_) {
      const std::int64_t step = read_signed(in);
      constexpr std::int64_t kBucketMax = std::int64_t{1} << 18;
      if (step > 2 * kBucketMax || step < -2 * kBucketMax || (i != 0 && step <= 0)) return false;
      bucket += step;
      if (bucket >= kBucketMax || bucket < -kBucketMax) return false;
    } else if (!read_scalar(in, value) || value.kind == ScalarView::Kind::Absent ||
               value.kind == ScalarView::Kind::String || (i != 0 && compare(values_.back().first, value) >= 0)) {
      return false;
    }
    const std::uint64_t count = in.varint();
    if (!in.ok() || count == 0) return false;
    count_ += count;
    if (has_buckets_) {
      buckets_.emplace_back(static_cast<std::int32_t>(bucket), count);
    } else {
      values_.emplace_back(value, count);
    }
  }
  return true;
}

// ----------------------------------------------------------------------------------------------------------- histogram

bool HistogramCounts::add(const ScalarView& number, const ScalarView& width) {
  std::int64_t bin = 0;
  if (number.kind == ScalarView::Kind::Integer && width.kind == ScalarView::Kind::Integer) {
    bin = number.integer / width.integer - (number.integer % width.integer < 0 ? 1 : 0);
  } else {
    bin = bin_of(as_double(number), as_double(width));
  }
  return add_bin(bin, 1);
}

bool HistogramCounts::add_bin(std::int64_t bin, std::uint64_t count) {
  if (bins_.size() == kBinsMax &&
      !std::binary_search(bins_.begin(), bins_.end(), std::pair<std::int64_t, std::uint64_t>(bin, 0),
                          [](const auto& a, const auto& b) { return a.first < b.first; })) {
    return false;
  }
  add_sorted(bins_, bin, count);
  return true;
}

bool HistogramCounts::add(const HistogramCounts& other) {
  return std::all_of(other.bins_.begin(), other.bins_.end(),
                     [this](const auto& one) { return add_bin(one.first, one.second); });
}

bool HistogramCounts::subtract(const HistogramCounts& other) {
  return std::all_of(other.bins_.begin(), other.bins_.end(),
                     [this](const auto& one) { return subtract_sorted(bins_, one.first, one.second, std::less<>()); });
}

void HistogramCounts::write(JsonWriter& json, const ScalarView& width) const {
  const auto edge = [&](std::int64_t bin) {
    std::int64_t exact = 0;
    if (width.kind == ScalarView::Kind::Integer && !__builtin_mul_overflow(bin, width.integer, &exact)) {
      json.Int64(exact);
    } else {
      write_number(json, edge_of(bin, as_double(width)));
    }
  };
  json.StartArray();
  for (const auto& [bin, count] : bins_) {
    json.StartObject();
    json.Key("from");
    edge(bin);
    json.Key("to");
    edge(bin + 1);
    json.Key("count");
    json.Uint64(count);
    json.EndObject();
  }
  json.EndArray();
}

void HistogramCounts::append_to(std::string& out) const {
  put_varint(out, bins_.size());
  for (const auto& [bin, count] : bins_) {
    put_signed(out, bin);
    put_varint(out, count);
  }
}

bool HistogramCounts::read(ByteReader& in) {
  bins_.clear();
  const std::uint64_t size = in.varint();
  if (!in.ok() || size > kBinsMax || size > in.remaining()) return false;
  for (std::uint64_t i = 0; i < size; ++i) {
    const std::int64_t bin = read_signed(in);
    const std::uint64_t count = in.varint();
    if (!in.ok() || count == 0 || (!bins_.empty() && bin <= bins_.back().first)) return false;
    bins_.emplace_back(bin, count);
  }
  return true;
}

// ----------------------------------------------------------------------------------------------------------------- top

std::size_t ValueCounts::node_bytes(std::string_view encoded) {
  constexpr std::size_t kNodeBytes = 80;
  return kNodeBytes + (encoded.size() > 15 ? encoded.size() : 0);
}

bool ValueCounts::add(const ScalarView& value) {
  scratch_.clear();
  put_scalar(scratch_, value);
  return add(scratch_, 1);
}

bool ValueCounts::add(std::string_view encoded, std::uint64_t count) {
  if (const auto at = counts_.find(encoded); at != counts_.end()) {
    at->second += count;
    return true;
  }
  if (counts_.size() == kValuesMax) return false;
  bytes_ += node_bytes(encoded);
  counts_.emplace(encoded, count);
  return true;
}

bool ValueCounts::add(const ValueCounts& other) {
  return std::all_of(other.counts_.begin(), other.counts_.end(),
                     [this](const auto& one) { return add(one.first, one.second); });
}

bool ValueCounts::subtract(const ValueCounts& other) {
  return std::all_of(other.counts_.begin(), other.counts_.end(), [this](const auto& one) {
    const auto at = counts_.find(one.first);
    if (at == counts_.end() || at->second < one.second) return false;
    at->second -= one.second;
    if (at->second == 0) {
      bytes_ -= node_bytes(at->first);
      counts_.erase(at);
    }
    return true;
  });
}

void ValueCounts::write(JsonWriter& json, std::size_t k, bool is_bool) const {
  struct One {
    ScalarView value;
    std::uint64_t count;
  };
  std::vector<One> all;
  all.reserve(counts_.size());
  for (const auto& [encoded, count] : counts_) {
    ByteReader in(encoded);
    One one{{}, count};
    if (read_scalar(in, one.value)) all.push_back(one);
  }
  const auto end = all.begin() + static_cast<std::ptrdiff_t>(std::min(k, all.size()));
  std::partial_sort(all.begin(), end, all.end(), [](const One& a, const One& b) {
    return a.count != b.count ? a.count > b.count : compare(a.value, b.value) < 0;
  });
  json.StartArray();
  for (auto at = all.begin(); at != end; ++at) {
    json.StartObject();
    json.Key("value");
    write_scalar(json, at->value, is_bool);
    json.Key("count");
    json.Uint64(at->count);
    json.EndObject();
  }
  json.EndArray();
}

void ValueCounts::append_to(std::string& out) const {
  put_varint(out, counts_.size());
  for (const auto& [encoded, count] : counts_) {
    out += encoded;
    put_varint(out, count);
  }
}

bool ValueCounts::read(ByteReader& in) {
  *this = {};
  const std::uint64_t size = in.varint();
  if (!in.ok() || size > kValuesMax || size > in.remaining()) return false;
  std::string before;
  for (std::uint64_t i = 0; i < size; ++i) {
    const std::string_view rest = in.rest();
    ScalarView value;
    if (!read_scalar(in, value) || value.kind == ScalarView::Kind::Absent) return false;
    const std::string_view encoded = rest.substr(0, rest.size() - in.remaining());
    const std::uint64_t count = in.varint();
    if (!in.ok() || count == 0 || (i != 0 && encoded <= before)) return false;
    before = encoded;
    add(encoded, count);
  }
  return true;
}

}  // namespace fjord::mapreduce
