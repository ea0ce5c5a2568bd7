#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/mapreduce/application.h"

namespace fjord::mapreduce {

/// A key with what is known of it: the values of its tuples, combined as far as the application does.
struct Tuple {
  std::uint32_t destination = 0;
  std::string_view key;
  std::vector<std::string_view> values;  ///< By rising bytes.
};

/// Tuples one after the other, each key once.
class TupleSource {
 public:
  virtual ~TupleSource() = default;
  /// False at the end. Views live until the next call. Errors: those of the medium.
  virtual Result<bool> next(Tuple& tuple) = 0;
};

/// A tuple with one value, and hash64() of its key.
struct HashedTuple {
  std::uint64_t hash = 0;
  std::string_view key;
  std::string_view value;
};

/// Key and JSON value, as users see them.
using Rows = std::vector<std::pair<std::string, std::string>>;

/// How much memory the rows of a job may take. Threading: any thread.
class RowBudget {
 public:
  explicit RowBudget(std::size_t bytes_max, std::stop_token stop = {})
      : bytes_max_(bytes_max), stop_(std::move(stop)) {}
  /// Errors: TooLarge, from the row on that is too much; Cancelled once a stop was asked for.
  Status take(const Rows::value_type& row);

 private:
  const std::size_t bytes_max_;
  const std::stop_token stop_;
  std::atomic<std::size_t> bytes_{0};
};

/// Where a key belongs, by its hash.
std::uint32_t destination_of(std::string_view key, std::uint32_t destinations);

/// The groups of a task in memory. Whatever order documents and tuples come in, the same tuples come out.
///
/// Threading: confined; those that Application::make_accumulator() makes may be used on a thread each. Lifetime: the
/// application it was made by outlives it.
class Accumulator {
 public:
  virtual ~Accumulator() = default;

  /// Adds a document. Errors: those of Application::map().
  virtual Status map(const DocumentView& document) = 0;
  /// Whether it is better to give it many documents at a time, by map_many().
  virtual bool takes_many() const { return false; }
  /// Adds some of `documents`, from the front and at least one, but for those that map() fails on; only if
  /// takes_many(). What it returns has no tuples in it any more. Errors: those of the task.
  virtual Result<MappedDocuments> map_many(std::span<const DocumentView> documents);
  /// Adds a tuple that came out of another accumulator. Errors: Corruption; TooLarge.
  virtual Status merge(std::string_view key, std::string_view value) = 0;
  /// The same for many.
  virtual Status merge(std::span<const HashedTuple> tuples);

  /// Appends what the document would add, as keys and values that merge() takes (put_string() of each), and adds
  /// nothing. Errors: those of Application::map(); then nothing is appended.
  virtual Status map_alone(const DocumentView& document, std::string& tuples) = 0;
  /// The same for some of `documents`, from the front and at least one; only if takes_many(). The tuples are in what it
  /// returns (MappedDocuments::ends). Errors: those of the task.
  virtual Result<MappedDocuments> map_many_alone(std::span<const DocumentView> documents);
  /// Takes out a tuple that was merged before: the groups are as if it never had been. False if that is not known to be
  /// so, as the largest value may be gone, or all of them: then the group of that key is good for nothing any more.
  virtual bool retract(std::string_view /*key*/, std::string_view /*value*/) { return false; }

  virtual std::uint64_t tuples() const = 0;  ///< Made by map() so far.
  virtual std::size_t groups() const = 0;    ///< The last few documents may not be in their groups yet, ...
  virtual std::size_t bytes() const = 0;     ///< ... nor count here.
  /// Forgets all groups and gives their memory back.
  virtual void clear() = 0;

  /// All tuples by destination and key; with 0 destinations in any order, all of destination 0. The source lives as
  /// long as nothing is added.
  virtual std::unique_ptr<TupleSource> drain(std::uint32_t destinations) = 0;
  /// Writes what `application`, which this was made for, makes of each group to the first of `rows`, in any order, and
  /// returns how many there are; groups() places are enough. The accumulator is only good for clear() then. Errors:
  /// those of reduce_key(); TooLarge.
  virtual Result<std::size_t> reduce(Application& application, RowBudget& budget, std::span<Rows::value_type> rows);
};

/// What values that wait to be combined take in memory before they are, if nobody says.
inline constexpr std::size_t kCombineFrom = std::size_t{256} << 10;

/// The application's own accumulator, or a table of what its map() emits. `cancelled`: for Emitter. `combine_from`: the
/// values of an application that combines many at a time wait until they take so much memory, or until they are
/// drained. In a table that does not get there all values of a key are combined at once, by rising bytes: the tuples
/// follow from what went in, even of a combine() that gives something else in another order, as sums of floating-point
/// numbers do.
std::unique_ptr<Accumulator> make_accumulator(Application& application, std::function<bool()> cancelled = {},
                                              std::size_t combine_from = kCombineFrom);

}  // namespace fjord::mapreduce
