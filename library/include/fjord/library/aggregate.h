#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/common/result.h"

namespace fjord {

struct JobInfo;

/// An aggregation. docs/reference/aggregate.md describes the language.
struct AggregateRequest {
  std::string type = {};                     ///< Type of the documents to read. Required.
  std::string selection = {};                ///< Empty: all documents of the type.
  std::vector<std::string> group_by = {};    ///< "city", "price / 100 as hundred"; none: all documents are one group.
  std::vector<std::string> aggregates = {};  ///< What to compute: "count()", "avg(price) as average"
  std::string having = {};                   ///< A condition on the rows: "count > 5".
  std::vector<std::string> order_by = {};    ///< "count desc"
  std::uint64_t limit = 0;                   ///< Number of rows; 0: no limit.
  std::string into = {};                     ///< Document type that the rows are stored as; empty: not stored.
  std::string into_namespace = {};           ///< Namespace of the stored rows' ids; empty: "results".
  std::string name = {};     ///< Part of the stored rows' ids: runs with equal names replace each other's documents.
  bool incremental = false;  ///< Read only what changed since the last run of the same request.
  std::map<std::string, std::string> settings = {};  ///< Settings of the job: {"cpu_max", "2"}.
  Duration timeout{0};                               ///< Longest time without an answer; 0: the client's timeout.
  Duration time_limit{0};  ///< A job that lasts longer is cancelled, and the result is Timeout; 0: no limit.
  /// A stop request cancels the job; the result is Cancelled. JobPassRequest ignores this member and the next.
  std::stop_token stop = {};
  /// Called about twice a second, and at the end of the job, on a thread of the client.
  std::function<void(const JobInfo&)> on_progress = {};
};

/// A cell whose value is a JSON text.
struct Json {
  std::string text;
  friend bool operator==(const Json&, const Json&) = default;
};
/// A cell of a row. std::monostate: no value, such as the average of no documents. An integer of more than 64 bits,
/// which a sum can be, is a Json with its digits.
using Cell = std::variant<std::monostate, std::int64_t, double, std::string, bool, Json>;
/// Returns text for people; "-" for no value.
std::string to_string(const Cell& cell);

/// What the cells of a column hold, whichever values there are.
enum class CellType : std::uint8_t { Integer, Number, Text, Truth, Json };

struct AggregateResult {
  Status status;
  std::vector<std::string> columns;  ///< Groups first, then aggregates.
  std::vector<CellType> types;       ///< One for each column.
  std::vector<std::vector<Cell>> rows;
  std::string job_id;
  std::uint64_t documents_read = 0;
  std::uint64_t documents_put = 0;      ///< Rows stored as documents, if the request has `into`.
  std::uint64_t documents_removed = 0;  ///< Documents of an earlier run with this name whose rows no longer exist.
  std::uint64_t buckets = 0;            ///< Number of buckets read.
  std::uint64_t buckets_total = 0;      ///< Number of buckets of the cluster when the job began.
  std::uint64_t dead_letters = 0;       ///< Documents that could not be aggregated.

  explicit operator bool() const { return status.is_ok(); }
};

}  // namespace fjord
