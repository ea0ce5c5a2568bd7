#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fjord/common/result.h"
#include "fjord/rpc/messages.h"

namespace fjord::cli {

/// One record of an input file, before it is understood.
struct Record {
  std::string_view text;  ///< Lives until the next call of next().
  std::uint64_t line = 0;
};

/// Cuts a file into records, and makes operations of them.
/// Threading: next() on one thread; parse() on several at once.
class RecordSource {
 public:
  virtual ~RecordSource() = default;
  /// "cars.csv".
  virtual const std::string& name() const = 0;
  /// The next record, or empty at the end. After an error the one after it follows, unless failed().
  virtual Result<std::optional<Record>> next() = 0;
  /// True if the file could not be read to its end.
  virtual bool failed() const = 0;
  /// 0 to 1; negative if unknown.
  virtual double part_read() const = 0;
  virtual Result<rpc::Operation> parse(const Record& record) const = 0;
};

}  // namespace fjord::cli
