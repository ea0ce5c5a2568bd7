#pragma once

#include <string>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/monitoring/metric_page.h"

namespace fjord {

struct ScrapeOptions {
  Duration timeout = seconds(2);  ///< Of each address, from looking it up to the last byte.
  std::size_t page_bytes_max = std::size_t{16} << 20;
};

/// Reads /metrics of all addresses (host:port) at once and waits for the answers: one result for each, in their order.
/// Errors: InvalidArgument (no host:port), NotReady (nobody listens there), Timeout, IoError (broken off, or an answer
/// that is not 200), Corruption (no page of metrics), TooLarge. Each names the address.
/// Threading: every thread; runs on the caller's.
std::vector<Result<MetricPage>> scrape(const std::vector<std::string>& addresses, const ScrapeOptions& options = {});

}  // namespace fjord
