#pragma once

#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "visitors/visitor_world.h"

namespace fjord::test {

inline constexpr const char* kCitySchema =
    "document city { field name type string { header } field text type string { body } }";

/// The id of city `n` at a location. With the world's 4 bits, location 1 is in BucketId(4, 1).
inline std::string city_id(int location, int n) {
  return "id:t:city:n=" + std::to_string(location) + ":" + std::to_string(n);
}

inline void put_city(VisitorWorld& world, int location, int n, std::size_t bytes = 100) {
  Document document(*world.types().find("city"), *DocumentId::parse(city_id(location, n)));
  REQUIRE(document.set("name", "city " + std::to_string(n)).is_ok());
  REQUIRE(document.set("text", std::string(bytes, 'x')).is_ok());
  world.put(document);
}

/// Calls storage node 0 and waits for its answer.
template <typename R>
typename R::Reply ask(VisitorWorld& world, R request, Duration limit = seconds(30)) {
  std::optional<Result<typename R::Reply>> got;
  rpc::call(world.transport, "storage0", std::move(request), limit, *world.executor,
            [&](Result<typename R::Reply> reply) { got = std::move(reply); });
  REQUIRE(world.run_until([&] { return got.has_value(); }));
  REQUIRE(got->has_value());
  return std::move(**got);
}

/// Returns the request for visitor 7, which gives the documents of these buckets.
inline rpc::CreateVisitor dump_of(std::vector<BucketId> buckets) {
  rpc::CreateVisitor create;
  create.visitor_id = 7;
  create.library = "dump";
  create.buckets = std::move(buckets);
  return create;
}

/// Polls visitor 7.
inline rpc::VisitorNextReply poll(VisitorWorld& world, std::uint64_t acknowledged, Duration wait = seconds(1)) {
  rpc::VisitorNext next;
  next.visitor_id = 7;
  next.acknowledged = acknowledged;
  next.wait_us = wait.count();
  return ask(world, next);
}

}  // namespace fjord::test
