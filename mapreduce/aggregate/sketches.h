#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "scalar.h"

/// Aggregates whose state is more than a few numbers. The state of each, and its encoding, depends only on the multiset
/// of values, not on the order of additions and merges.
namespace fjord::mapreduce {

/// The number of different values: exact from 128-bit hashes of up to kExactMax values, beyond that estimated by
/// HyperLogLog.
class DistinctSketch {
 public:
  static constexpr std::size_t kExactMax = 1024;
  static constexpr unsigned kIndexBits = 12;
  static constexpr std::size_t kRegisters = std::size_t{1} << kIndexBits;
  /// Relative standard deviation of the estimate: 1.04 / sqrt(registers).
  static constexpr double kError = 1.04 / 64;

  void add(const ScalarView& value);
  void add(const DistinctSketch& other);
  bool is_exact() const { return registers_.empty(); }
  std::uint64_t estimate() const;
  void append_to(std::string& out) const;
  bool read(ByteReader& in);
  std::size_t bytes() const { return hashes_.capacity() * sizeof(Hash) + registers_.capacity(); }

 private:
  using Hash = std::pair<std::uint64_t, std::uint64_t>;

  void add(const Hash& hash);
  void count(const Hash& hash);
  void to_registers();

  std::vector<Hash> hashes_;  // ascending
  std::vector<std::uint8_t> registers_;
};

/// The value at a rank: exact from values and their counts up to kExactMax different values, beyond that from counts of
/// buckets that each span 1/128 of a power of two.
class QuantileSketch {
 public:
  static constexpr std::size_t kExactMax = 512;
  static constexpr double kRelativeError = 1.0 / 256;

  void add(const ScalarView& number, std::uint64_t count = 1);
  void add(const QuantileSketch& other);
  /// Subtracts a sketch that was added before. Returns false if that is impossible because the values are no longer
  /// known.
  bool subtract(const QuantileSketch& other);
  bool is_exact() const { return !has_buckets_; }
  bool is_empty() const { return count_ == 0; }
  std::uint64_t count() const { return count_; }
  /// Returns the smallest value such that at least the share `fraction` of all values is not greater. Exact for the
  /// decimal number that `fraction` was written as. Absent if there are no values.
  ScalarView quantile(double fraction) const;
  void append_to(std::string& out) const;
  bool read(ByteReader& in);
  std::size_t bytes() const {
    return values_.capacity() * sizeof(values_[0]) + buckets_.capacity() * sizeof(buckets_[0]);
  }

 private:
  static std::int32_t bucket_of(double number);
  static double middle_of(std::int32_t bucket);
  void add_bucket(std::int32_t bucket, std::uint64_t count);
  void to_buckets();

  std::vector<std::pair<ScalarView, std::uint64_t>> values_;     // ascending
  std::vector<std::pair<std::int32_t, std::uint64_t>> buckets_;  // ascending
  bool has_buckets_ = false;
  std::uint64_t count_ = 0;
};

/// Counts of values per bin: `bin` * width <= value < (`bin` + 1) * width, with the edges as write() prints them.
class HistogramCounts {
 public:
  static constexpr std::size_t kBinsMax = 65536;

  /// Returns false and adds nothing if there would be more than kBinsMax bins.
  bool add(const ScalarView& number, const ScalarView& width);
  bool add(const HistogramCounts& other);
  /// Subtracts counts that were added before. Returns false if some of them are missing.
  bool subtract(const HistogramCounts& other);
  bool is_empty() const { return bins_.empty(); }
  /// Writes an array of {"from","to","count"} by rising bin.
  void write(JsonWriter& json, const ScalarView& width) const;
  void append_to(std::string& out) const;
  bool read(ByteReader& in);
  std::size_t bytes() const { return bins_.capacity() * sizeof(bins_[0]); }

 private:
  bool add_bin(std::int64_t bin, std::uint64_t count);

  std::vector<std::pair<std::int64_t, std::uint64_t>> bins_;  // ascending
};

/// Counts of all different values.
class ValueCounts {
 public:
  static constexpr std::size_t kValuesMax = 65536;

  /// Returns false and adds nothing if there would be more than kValuesMax values.
  bool add(const ScalarView& value);
  bool add(const ValueCounts& other);
  /// Subtracts counts that were added before. Returns false if some of them are missing.
  bool subtract(const ValueCounts& other);
  bool is_empty() const { return counts_.empty(); }
  /// Writes the `k` most frequent values as an array of {"value","count"}; of equally frequent values the smaller one
  /// first.
  void write(JsonWriter& json, std::size_t k, bool is_bool) const;
  void append_to(std::string& out) const;
  bool read(ByteReader& in);
  std::size_t bytes() const { return bytes_; }

 private:
  bool add(std::string_view encoded, std::uint64_t count);
  static std::size_t node_bytes(std::string_view encoded);

  std::map<std::string, std::uint64_t, std::less<>> counts_;
  std::string scratch_;
  std::size_t bytes_ = 0;
};

}  // namespace fjord::mapreduce
