#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/mapreduce/aggregate_spec.h"
#include "fjord/mapreduce/job_rows.h"
#include "fjord/rpc/job_messages.h"

namespace fjord {
class Connection;
}

namespace fjord::bench {

struct Answer {
  std::vector<mapreduce::JobRows> pages;  ///< The rows as they came, a page after the other.
  std::size_t count = 0;                  ///< Number of rows.
  rpc::JobStatus status;
  double seconds = 0;  ///< Time from submitting the job until all rows have arrived.

  /// Returns the text of each row. Lifetime: valid as long as the answer.
  std::vector<std::string_view> rows() const;
};

/// Runs an aggregation and fetches its rows.
Result<Answer> run_job(Connection& connection, const mapreduce::AggregateSpec& spec, unsigned visitors_per_node = 0,
                       bool is_incremental = false);

}  // namespace fjord::bench
