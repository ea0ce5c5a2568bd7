#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/common/result.h"

namespace fjord {

/// What an aggregation computes. docs/reference/aggregate.md has the language.
struct AggregateRequest {
  std::string type = {};                     ///< Of the documents. Must be given.
  std::string selection = {};                ///< Empty: all documents of the type.
  std::vector<std::string> group_by = {};    ///< "city", "price / 100 as hundred"; none: all documents are one group.
  std::vector<std::string> aggregates = {};  ///< "count()", "avg(price) as average"
  std::string having = {};                   ///< A condition on the rows: "count > 5".
  std::vector<std::string> order_by = {};    ///< "count desc"
  std::uint64_t limit = 0;                   ///< 0: none.
  std::string into = {};                     ///< A document type: the rows become documents of it.
  std::string into_namespace = {};           ///< Of these documents' ids; empty: "results".
  std::string name = {};                     ///< Part of these ids: runs with one name replace each other's documents.
  bool incremental = false;                  ///< Read only what changed since the last run of the same request.
  std::map<std::string, std::string> settings = {};  ///< Of the job, such as {"cpu_max", "2"}.
  Duration timeout{0};  ///< How long the cluster may not answer; 0: the client's. The run itself has no limit.
};

/// A cell of a row. Null: no value, such as the average of nothing.
struct Json {
  std::string text;
  friend bool operator==(const Json&, const Json&) = default;
};
using Cell = std::variant<std::monostate, std::int64_t, double, std::string, bool, Json>;
/// As people read it: "-" for no value.
std::string to_string(const Cell& cell);

struct AggregateResult {
  Status status;
  std::vector<std::string> columns;  ///< Groups first, then aggregates.
  std::vector<std::vector<Cell>> rows;
  std::string job_id;
  std::uint64_t documents_read = 0;
  std::uint64_t documents_put = 0;      ///< With `into`.
  std::uint64_t documents_removed = 0;  ///< Of an earlier run of the same name, whose rows are gone.
  std::uint64_t buckets = 0;            ///< All of the type's buckets were read.

  explicit operator bool() const { return status.is_ok(); }
};

}  // namespace fjord
