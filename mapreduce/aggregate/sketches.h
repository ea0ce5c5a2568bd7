#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "scalar.h"

/// Aggregates that need more than a few numbers. The state of each is a function of the multiset of values alone, not
/// of the order in which they were added and merged, and so are its bytes.
namespace fjord::mapreduce {

/// How many different values there are: the values' hashes (128 bits) while they are few, beyond that HyperLogLog.
class DistinctSketch {
 public:
  static constexpr std::size_t kExactMax = 1024;
  static constexpr unsigned kIndexBits = 12;
  static constexpr std::size_t kRegisters = std::size_t{1} << kIndexBits;
  /// 1.04 / sqrt(registers): the standard deviation of the estimate, relative.
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

  std::vector<Hash> hashes_;  // rising
  std::vector<std::uint8_t> registers_;
};

/// The value of a rank: all values with their counts while few of them are different, beyond that counts of buckets
/// that each span 1/128 of a power of two.
class QuantileSketch {
 public:
  static constexpr std::size_t kExactMax = 512;
  static constexpr double kRelativeError = 1.0 / 256;

  void add(const ScalarView& number, std::uint64_t count = 1);
  void add(const QuantileSketch& other);
  /// Takes out what was added before. False if that cannot be undone: which values there were is not known any more.
  bool subtract(const QuantileSketch& other);
  bool is_exact() const { return !has_buckets_; }
  bool is_empty() const { return count_ == 0; }
  std::uint64_t count() const { return count_; }
  /// The smallest value so that a part of at least `fraction` of all is not greater. Absent if there are none.
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

  std::vector<std::pair<ScalarView, std::uint64_t>> values_;     // rising
  std::vector<std::pair<std::int32_t, std::uint64_t>> buckets_;  // rising
  bool has_buckets_ = false;
  std::uint64_t count_ = 0;
};

/// Counts of values by floor(value / width).
class HistogramCounts {
 public:
  static constexpr std::size_t kBinsMax = 65536;

  /// False, and nothing added, if there would be more than kBinsMax bins.
  bool add(const ScalarView& number, const ScalarView& width);
  bool add(const HistogramCounts& other);
  /// Takes out what was added before. False if it is not there.
  bool subtract(const HistogramCounts& other);
  bool is_empty() const { return bins_.empty(); }
  /// An array of {"from","to","count"} by rising bin.
  void write(JsonWriter& json, const ScalarView& width) const;
  void append_to(std::string& out) const;
  bool read(ByteReader& in);
  std::size_t bytes() const { return bins_.capacity() * sizeof(bins_[0]); }

 private:
  bool add_bin(std::int64_t bin, std::uint64_t count);

  std::vector<std::pair<std::int64_t, std::uint64_t>> bins_;  // rising
};

/// Every value with its count.
class ValueCounts {
 public:
  static constexpr std::size_t kValuesMax = 65536;

  /// False, and nothing added, if there would be more than kValuesMax values.
  bool add(const ScalarView& value);
  bool add(const ValueCounts& other);
  /// Takes out what was added before. False if it is not there.
  bool subtract(const ValueCounts& other);
  bool is_empty() const { return counts_.empty(); }
  /// The `k` most frequent values, as an array of {"value","count"}; of equal frequency the smaller value first.
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
