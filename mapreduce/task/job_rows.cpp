#include "fjord/mapreduce/job_rows.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <numeric>
#include <span>
#include <utility>

#include "fjord/common/coding.h"

namespace fjord::mapreduce {
namespace {

/// Least number of rows for which other threads are used.
constexpr std::size_t kParallelMin = 1000;

JobRows::Row row_of(std::string_view packed) {
  ByteReader in(packed);
  const std::string_view key = in.string();
  return {key, in.string()};
}

/// A row, with the first bytes of its key, which distinguish most keys.
struct Place {
  std::uint64_t prefix;
  const char* packed;
  std::size_t bytes;

  JobRows::Row row() const { return row_of({packed, bytes}); }
  bool operator<(const Place& other) const {
    return prefix != other.prefix ? prefix < other.prefix : row() < other.row();
  }
};

std::uint64_t prefix_of(std::string_view key) {
  std::uint64_t prefix = 0;
  for (std::size_t i = 0; i < sizeof(prefix); ++i) {
    prefix = (prefix << 8) | (i < key.size() ? static_cast<unsigned char>(key[i]) : 0u);
  }
  return prefix;
}

/// Merges neighbouring sorted runs until one is left.
std::vector<Place> merge_runs(std::vector<std::vector<Place>> runs, BulkExecutor& bulk) {
  while (runs.size() > 1) {
    std::vector<std::vector<Place>> merged((runs.size() + 1) / 2);
    bulk.for_each(merged.size(), [&](std::size_t i) {
      std::vector<Place>& first = runs[2 * i];
      if (2 * i + 1 == runs.size()) {
        merged[i] = std::move(first);
        return;
      }
      std::vector<Place>& second = runs[2 * i + 1];
      merged[i].reserve(first.size() + second.size());
      std::merge(first.begin(), first.end(), second.begin(), second.end(), std::back_inserter(merged[i]));
      first = {};
      second = {};
    });
    runs = std::move(merged);
  }
  return runs.empty() ? std::vector<Place>() : std::move(runs.front());
}

}  // namespace

JobRows::JobRows(std::initializer_list<Row> rows) {
  for (const Row& row : rows) add(row.key, row.value);
}

Result<JobRows> JobRows::unpack(std::string packed) {
  JobRows rows;
  ByteReader in(packed);
  while (!in.at_end()) {
    rows.begins_.push_back(packed.size() - in.remaining());
    in.string();
    in.string();
    if (!in.ok()) return Status(StatusCode::Corruption, "malformed results of a job");
  }
  rows.packed_ = std::move(packed);
  return rows;
}

JobRows::Row JobRows::operator[](std::size_t row) const {
  return row_of(std::string_view(packed_).substr(begins_[row], end_of(row) - begins_[row]));
}

void JobRows::add(std::string_view key, std::string_view value) {
  begins_.push_back(packed_.size());
  put_string(packed_, key);
  put_string(packed_, value);
}

std::string_view JobRows::packed(std::size_t first, std::size_t bytes_max, std::size_t& end) const {
  end = std::min(first, size());
  if (end == size()) return {};
  const std::size_t begin = begins_[first];
  const std::size_t limit = bytes_max < packed_.size() - begin ? begin + bytes_max : packed_.size();
  // The rows before the last one that begins at or before the limit end by then.
  const auto after = std::upper_bound(begins_.begin() + static_cast<std::ptrdiff_t>(first), begins_.end(), limit);
  end = limit == packed_.size() ? size() : static_cast<std::size_t>(after - begins_.begin()) - 1;
  end = std::max(end, first + 1);
  return std::string_view(packed_).substr(begin, end_of(end - 1) - begin);
}

/// Sorts parts and copies their rows to where they belong, in pieces of about equal numbers of rows.
class JobRows::Sorting {
  static_assert(sizeof(Place) == kPlaceBytes);

 public:
  Sorting(std::span<const JobRows> parts, BulkExecutor* bulk) : parts_(parts), bulk_(bulk) {}

  JobRows sorted() {
    std::vector<std::vector<Place>> runs(parts_.size());
    for_each(parts_.size(), [&](std::size_t i) { runs[i] = sorted_places(parts_[i]); });
    order_ = bulk_ == nullptr ? std::move(runs.front()) : merge_runs(std::move(runs), *bulk_);
    std::vector<std::size_t> begins(kPieces + 1);
    for_each(kPieces, [&](std::size_t i) {
      for (std::size_t at = first_of(i); at < first_of(i + 1); ++at) begins[i + 1] += order_[at].bytes;
    });
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    JobRows rows;
    rows.packed_.resize(begins.back());
    rows.begins_.resize(order_.size());
    for_each(kPieces, [&](std::size_t i) { copy(i, begins[i], rows); });
    return rows;
  }

 private:
  static constexpr std::size_t kPieces = 8;
  static constexpr std::size_t kAhead = 16;

  template <typename F>
  void for_each(std::size_t count, const F& f) {
    if (bulk_ != nullptr) return bulk_->for_each(count, f);
    for (std::size_t i = 0; i < count; ++i) f(i);
  }
  std::size_t first_of(std::size_t piece) const { return order_.size() * piece / kPieces; }

  static std::vector<Place> sorted_places(const JobRows& rows) {
    std::vector<Place> places;
    places.reserve(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const char* const packed = rows.packed_.data() + rows.begins_[i];
      places.push_back({prefix_of(rows[i].key), packed, rows.end_of(i) - rows.begins_[i]});
    }
    std::sort(places.begin(), places.end());
    return places;
  }

  void copy(std::size_t piece, std::size_t begin, JobRows& rows) const {
    const std::size_t end = first_of(piece + 1);
    for (std::size_t at = first_of(piece); at < end; ++at) {
      if (at + kAhead < end) __builtin_prefetch(order_[at + kAhead].packed);
      std::memcpy(rows.packed_.data() + begin, order_[at].packed, order_[at].bytes);
      rows.begins_[at] = begin;
      begin += order_[at].bytes;
    }
  }

  std::span<const JobRows> parts_;
  BulkExecutor* bulk_;
  std::vector<Place> order_;
};

void JobRows::sort() {
  for (std::size_t i = 1; i < size(); ++i) {
    if ((*this)[i] < (*this)[i - 1]) {
      *this = Sorting({this, 1}, nullptr).sorted();
      return;
    }
  }
}

JobRows JobRows::merge(std::vector<JobRows>& parts, BulkExecutor& bulk) {
  std::size_t rows = 0;
  for (const JobRows& part : parts) rows += part.size();
  JobRows merged;
  if (rows >= kParallelMin) {
    merged = Sorting(parts, &bulk).sorted();
  } else {
    for (const JobRows& part : parts) {
      for (const auto& [key, value] : part) merged.add(key, value);
    }
    merged.sort();
  }
  parts.clear();
  return merged;
}

}  // namespace fjord::mapreduce
