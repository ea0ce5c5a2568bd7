#include "fjord/common/bulk_executor.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <vector>

namespace fjord {
namespace {

TEST_CASE("bulk executor: the body runs once for each index before for_each returns") {
  const bool tbb = GENERATE(false, true);
  const auto bulk = tbb ? make_tbb_bulk_executor() : make_inline_bulk_executor();
  std::vector<std::atomic<int>> calls(1000);
  bulk->for_each(calls.size(), [&](std::size_t i) { ++calls[i]; });
  bool once = true;
  for (const auto& count : calls) once = once && count == 1;
  CHECK(once);
  bulk->for_each(0, [](std::size_t) { FAIL("called"); });
}

TEST_CASE("bulk executor: the inline one goes in rising order") {
  std::vector<std::size_t> order;
  make_inline_bulk_executor()->for_each(5, [&](std::size_t i) { order.push_back(i); });
  CHECK(order == std::vector<std::size_t>{0, 1, 2, 3, 4});
}

}  // namespace
}  // namespace fjord
