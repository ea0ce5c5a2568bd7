#include "fjord/common/traffic.h"

#include <cmath>

#include "fjord/common/check.h"

namespace fjord::traffic {

double put_payload_traffic(double replicas, double document_bytes, double header_bytes) {
  return (replicas + 1) * (2 * header_bytes + document_bytes);
}

double frame_overhead(double message_bytes) {
  return std::ceil(message_bytes / kFramePayloadBytes) * kFrameOverheadBytes;
}

double put_traffic(double replicas, double document_bytes, double header_bytes) {
  return put_payload_traffic(replicas, document_bytes, header_bytes) +
         (replicas + 1) * (frame_overhead(header_bytes) + frame_overhead(header_bytes + document_bytes));
}

double bucket_delay_s(double total_traffic_bytes, double rate_bytes_per_s, double buckets) {
  FJORD_CHECK(rate_bytes_per_s > 0 && buckets > 0);
  return total_traffic_bytes / (rate_bytes_per_s * buckets);
}

}  // namespace fjord::traffic
