#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "fjord/common/clock.h"

namespace fjord {

/// How a Client behaves; the defaults suit most programs.
struct ClientOptions {
  /// host:port of distributors that are asked for the cluster state. One that answers is enough; the addresses of the
  /// others come with the state. Not empty.
  std::vector<std::string> addresses;
  /// Deadline of an operation or call whose caller says none, retries included.
  Duration default_timeout = seconds(30);
  /// How long one attempt may take before it counts as in doubt and is repeated.
  Duration attempt_timeout = seconds(5);
  /// How long one distributor may take to answer a question about the cluster before the next one is asked.
  Duration cluster_info_timeout = seconds(1);
  /// The wait before the n-th retry is drawn from the upper half of backoff_min * 2^(n-1), at most backoff_max.
  Duration backoff_min = milliseconds(5);
  Duration backoff_max = seconds(1);
  /// A batch is sent at the latest when so much waits for one distributor, if a batch may be sent at all.
  std::size_t batch_operations_max = 512;
  std::size_t batch_bytes_max = std::size_t{1} << 20;
  /// Gives updates and operations with a condition a token if they have none. Without it a repetition that another
  /// distributor gets may be applied twice.
  bool make_tokens = true;
  /// Batches on their way to one distributor at once, at least 1.
  std::size_t batches_in_flight_max = 4;
};

}  // namespace fjord
