#include "fjord/common/traffic.h"

#include <catch2/catch.hpp>

namespace fjord::traffic {

TEST_CASE("traffic: a put without frames is as many messages as the text says") {
  CHECK(put_payload_traffic(1, 1000) == 2 * (2 * 200 + 1000));
  CHECK(frame_overhead(1460) == 58);
  CHECK(frame_overhead(1461) == 116);
  // Frames that are exactly full need no further one.
  for (int frames = 1; frames < 2000; ++frames) CHECK(frame_overhead(frames * kFramePayloadBytes) == frames * 58);
  CHECK(put_traffic(2, 1000) == 3 * 1400 + 3 * (58 + 58));
}

TEST_CASE("traffic: a job that pauses between buckets takes at least traffic over rate") {
  const double buckets = 1000;
  const double delay = bucket_delay_s(5e9, 10e6, buckets);
  CHECK(delay * buckets == Approx(500));
}

}  // namespace fjord::traffic
