#pragma once

#include <string>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/monitoring/metric_page.h"

namespace fjord {

struct ScrapeOptions {
  Duration timeout = seconds(2);  ///< Timeout of each address, from its resolution to the last byte.
  std::size_t page_bytes_max = std::size_t{16} << 20;
};

/// Reads /metrics of all addresses (host:port) in parallel and waits for the answers. Returns one result for each
/// address, in their order.
/// Errors: InvalidArgument (not host:port), NotReady (no listener there), Timeout, IoError (connection lost, or an
/// answer that is not 200), Corruption (malformed metrics), TooLarge. Each names the address.
/// Threading: every thread; runs on the caller's.
std::vector<Result<MetricPage>> scrape(const std::vector<std::string>& addresses, const ScrapeOptions& options = {});

}  // namespace fjord
