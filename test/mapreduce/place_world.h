#pragma once

#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "mapreduce/job_world.h"

namespace fjord::test {

inline constexpr const char* kPlaceSchema = R"(document place {
  field city type string { header }
  field size type long { header }
}
)";

/// Puts places; every tenth has no city. Returns their number by city.
inline std::map<std::string, int> put_places(JobWorld& jobs, int count) {
  std::map<std::string, int> counts;
  for (int i = 0; i < count; ++i) {
    Document document(*jobs.world.types().find("place"),
                      *DocumentId::parse("id:t:place:n=" + std::to_string(i) + ":" + std::to_string(i)));
    REQUIRE(document.set("size", std::int64_t{1}).is_ok());
    if (i % 10 != 0) {
      const std::string city = "city " + std::to_string(i * i % 37);
      REQUIRE(document.set("city", city).is_ok());
      ++counts[city];
    }
    jobs.world.put(document);
  }
  return counts;
}

/// Returns a job that counts the places of each city and sums their sizes.
inline rpc::JobSpec spec_of(rpc::Shuffle shuffle, std::vector<rpc::Parameter> settings = {},
                            const char* missing = "skip") {
  rpc::JobSpec spec;
  spec.application = "fieldstats";
  spec.document_type = "place";
  spec.parameters = {{"group", "city"}, {"value", "size"}, {"missing", missing}};
  spec.shuffle = shuffle;
  spec.settings = std::move(settings);
  return spec;
}

}  // namespace fjord::test
