#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fjord/common/result.h"
#include "fjord/rpc/distributor_messages.h"

namespace fjord {

/// One unparsed record of an input file.
struct FileRecord {
  std::string_view text;  ///< Valid until the next call of next().
  std::uint64_t line = 0;
};

/// Cuts a file into records and parses them into operations.
/// Threading: next() on one thread; parse() on several at once.
class RecordSource {
 public:
  virtual ~RecordSource() = default;
  /// Returns the name of the file for messages: "cars.csv".
  virtual const std::string& name() const = 0;
  /// Returns the next record, or none at the end. After an error the next call continues with the following record,
  /// unless failed().
  virtual Result<std::optional<FileRecord>> next() = 0;
  /// Returns true if an error prevents reading the rest of the file.
  virtual bool failed() const = 0;
  /// Returns the fraction read, 0 to 1; negative if unknown.
  virtual double part_read() const = 0;
  virtual Result<rpc::Operation> parse(const FileRecord& record) const = 0;
};

}  // namespace fjord
