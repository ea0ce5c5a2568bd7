#include "bucket_index.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <iterator>
#include <vector>

#include "fjord/common/random.h"

namespace fjord::storage {

TEST_CASE("bucket index: finds the buckets that overlap another one, as a look at all of them does") {
  Random random(7);
  for (int round = 0; round < 50; ++round) {
    BucketIndex index;
    std::vector<BucketId> all;
    for (int i = 0; i < 200; ++i) {
      const BucketId bucket(1 + static_cast<unsigned>(random.below(9)), random.below(512));
      if (random.chance(0.3) && !all.empty()) {
        index.remove(all.back());
        std::erase(all, BucketId(all.back()));
      }
      index.add(bucket);
      std::erase(all, bucket);
      all.push_back(bucket);
    }
    CHECK(index.size() == all.size());
    for (int i = 0; i < 100; ++i) {
      const BucketId asked(static_cast<unsigned>(random.below(12)), random.below(2048));
      CHECK(index.contains(asked) == (std::find(all.begin(), all.end(), asked) != all.end()));
      std::vector<BucketId> expected;
      std::copy_if(all.begin(), all.end(), std::back_inserter(expected),
                   [&](BucketId here) { return here != asked && (here.contains(asked) || asked.contains(here)); });
      std::vector<BucketId> found = index.overlapping(asked);
      std::sort(expected.begin(), expected.end());
      std::sort(found.begin(), found.end());
      CHECK(found == expected);
    }
  }
}

}  // namespace fjord::storage
