#pragma once

#include <string>
#include <vector>

#include "fjord/mapreduce/aggregate_spec.h"
#include "fjord/rpc/job_messages.h"

namespace fjord {
class Connection;
}

namespace fjord::bench {

struct Answer {
  std::vector<std::string> rows;
  rpc::JobStatus status;
  double seconds = 0;  ///< Time from submitting the job until all rows have arrived.
};

/// Runs an aggregation and fetches its rows.
Result<Answer> run_job(Connection& connection, const mapreduce::AggregateSpec& spec, unsigned visitors_per_node = 0,
                       bool is_incremental = false);

}  // namespace fjord::bench
