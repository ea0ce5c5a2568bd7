#include "fjord/mapreduce/job_rows.h"

#include <algorithm>
#include <cstring>
#include <iterator>
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

/// A row, with those bytes of its key that follow what all keys begin with; these bytes distinguish most keys.
struct Place {
  std::uint64_t prefix;
  const char* packed;
  std::size_t bytes;

  JobRows::Row row() const { return row_of({packed, bytes}); }
  bool operator<(const Place& other) const {
    return prefix != other.prefix ? prefix < other.prefix : row() < other.row();
  }
};

using Places = std::vector<Place>;

std::uint64_t prefix_of(std::string_view key) {
  std::uint64_t prefix = 0;
  for (std::size_t i = 0; i < sizeof(prefix); ++i) {
    prefix = (prefix << 8) | (i < key.size() ? static_cast<unsigned char>(key[i]) : 0u);
  }
  return prefix;
}

/// Returns how many bytes all keys of `rows` have in common with the beginning of `key`.
std::size_t common_bytes(const JobRows& rows, std::string_view key) {
  for (const auto& row : rows) {
    const std::size_t most = std::min(key.size(), row.key.size());
    if (std::memcmp(key.data(), row.key.data(), most) == 0) {
      key = key.substr(0, most);
    } else {
      key = key.substr(
          0, static_cast<std::size_t>(std::mismatch(key.begin(), key.end(), row.key.begin()).first - key.begin()));
    }
  }
  return key.size();
}

/// Merges neighbouring sorted runs until one is left.
Places merge_runs(std::vector<Places> runs) {
  while (runs.size() > 1) {
    std::vector<Places> merged;
    for (std::size_t i = 0; i + 1 < runs.size(); i += 2) {
      Places& into = merged.emplace_back();
      into.reserve(runs[i].size() + runs[i + 1].size());
      std::merge(runs[i].begin(), runs[i].end(), runs[i + 1].begin(), runs[i + 1].end(), std::back_inserter(into));
    }
    if (runs.size() % 2 != 0) merged.push_back(std::move(runs.back()));
    runs = std::move(merged);
  }
  return runs.empty() ? Places() : std::move(runs.front());
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

/// Sorts parts, merges them in pieces, each of some range of keys, and copies their rows to where they belong.
class JobRows::Sorting {
  static_assert(sizeof(Place) == kPlaceBytes);

 public:
  Sorting(std::span<const JobRows> parts, BulkExecutor* bulk) : parts_(parts), bulk_(bulk) {}

  JobRows sorted() {
    const std::size_t common = common_bytes_of_all();
    std::vector<Places> runs(parts_.size());
    for_each(parts_.size(), [&](std::size_t i) { runs[i] = sorted_places(parts_[i], common); });
    const Places bounds = bounds_of_pieces(runs);
    std::vector<Places> pieces(bounds.size() + 1);
    for_each(pieces.size(), [&](std::size_t i) { pieces[i] = merged_piece(runs, bounds, i); });
    runs.clear();
    std::vector<std::size_t> rows_before(pieces.size() + 1);
    std::vector<std::size_t> bytes_before(pieces.size() + 1);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      rows_before[i + 1] = rows_before[i] + pieces[i].size();
      bytes_before[i + 1] = bytes_before[i];
      for (const Place& place : pieces[i]) bytes_before[i + 1] += place.bytes;
    }
    JobRows rows;
    rows.packed_.resize(bytes_before.back());
    rows.begins_.resize(rows_before.back());
    for_each(pieces.size(), [&](std::size_t i) { copy(pieces[i], rows_before[i], bytes_before[i], rows); });
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

  std::size_t common_bytes_of_all() {
    const auto filled = std::find_if(parts_.begin(), parts_.end(), [](const JobRows& part) { return !part.empty(); });
    if (filled == parts_.end()) return 0;
    const std::string_view key = (*filled)[0].key;
    std::vector<std::size_t> common(parts_.size());
    for_each(parts_.size(), [&](std::size_t i) { common[i] = common_bytes(parts_[i], key); });
    return *std::min_element(common.begin(), common.end());
  }

  static Places sorted_places(const JobRows& rows, std::size_t common) {
    Places places;
    places.reserve(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const char* const packed = rows.packed_.data() + rows.begins_[i];
      places.push_back({prefix_of(rows[i].key.substr(common)), packed, rows.end_of(i) - rows.begins_[i]});
    }
    std::sort(places.begin(), places.end());
    return places;
  }

  /// Returns the places where the second piece and each later one begin, so that pieces have about the same number of
  /// rows. There are no bounds if there is one run.
  static Places bounds_of_pieces(const std::vector<Places>& runs) {
    Places samples;
    for (const Places& run : runs) {
      for (std::size_t i = 1; i < kPieces && runs.size() > 1 && !run.empty(); ++i) {
        samples.push_back(run[run.size() * i / kPieces]);
      }
    }
    std::sort(samples.begin(), samples.end());
    Places bounds;
    for (std::size_t i = 1; i < kPieces && !samples.empty(); ++i)
      bounds.push_back(samples[samples.size() * i / kPieces]);
    return bounds;
  }

  static Places merged_piece(const std::vector<Places>& runs, const Places& bounds, std::size_t piece) {
    std::vector<Places> parts;
    for (const Places& run : runs) {
      const auto begin = piece == 0 ? run.begin() : std::lower_bound(run.begin(), run.end(), bounds[piece - 1]);
      const auto end = piece == bounds.size() ? run.end() : std::lower_bound(begin, run.end(), bounds[piece]);
      if (begin != end) parts.emplace_back(begin, end);
    }
    return merge_runs(std::move(parts));
  }

  static void copy(const Places& piece, std::size_t row, std::size_t begin, JobRows& rows) {
    for (std::size_t at = 0; at < piece.size(); ++at) {
      if (at + kAhead < piece.size()) __builtin_prefetch(piece[at + kAhead].packed);
      std::memcpy(rows.packed_.data() + begin, piece[at].packed, piece[at].bytes);
      rows.begins_[row + at] = begin;
      begin += piece[at].bytes;
    }
  }

  std::span<const JobRows> parts_;
  BulkExecutor* bulk_;
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
