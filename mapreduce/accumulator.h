#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
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

/// Where a key belongs, by its hash.
std::uint32_t destination_of(std::string_view key, std::uint32_t destinations);

/// The groups of a task in memory. Whatever order documents and tuples come in, the same tuples come out.
///
/// Threading: confined. Lifetime: the application it was made by outlives it.
class Accumulator {
 public:
  virtual ~Accumulator() = default;

  /// Adds a document. Errors: those of Application::map().
  virtual Status map(const DocumentView& document) = 0;
  /// Adds a tuple that came out of another accumulator. Errors: Corruption; TooLarge.
  virtual Status merge(std::string_view key, std::string_view value) = 0;

  virtual std::uint64_t tuples() const = 0;  ///< Made by map() so far.
  virtual std::size_t groups() const = 0;
  virtual std::size_t bytes() const = 0;
  /// Forgets all groups and gives their memory back.
  virtual void clear() = 0;

  /// All tuples by destination and key; with 0 destinations in any order, all of destination 0. The source lives as
  /// long as nothing is added.
  virtual std::unique_ptr<TupleSource> drain(std::uint32_t destinations) = 0;
};

/// The application's own accumulator, or a table of what its map() emits. `cancelled`: for Emitter.
std::unique_ptr<Accumulator> make_accumulator(Application& application, std::function<bool()> cancelled = {});

}  // namespace fjord::mapreduce
