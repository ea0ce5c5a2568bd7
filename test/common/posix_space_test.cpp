#include "fjord/common/posix_space.h"

#include <catch2/catch.hpp>

namespace fjord {
namespace {

// 100 blocks: 40 are used, 20 are free for all, 40 are kept for root.
constexpr fsblkcnt_t kUsed = 40;
constexpr fsblkcnt_t kFreeForAll = 20;
constexpr fsblkcnt_t kKeptForRoot = 40;
constexpr unsigned long kBlockBytes = 4096;

TEST_CASE("what a file system keeps for root is neither free nor part of the whole", "[common]") {
  struct statvfs info {};
  info.f_frsize = kBlockBytes;
  info.f_bsize = 2 * kBlockBytes;  // Counts are in f_frsize.
  info.f_blocks = kUsed + kFreeForAll + kKeptForRoot;
  info.f_bfree = kFreeForAll + kKeptForRoot;
  info.f_bavail = kFreeForAll;
  const SpaceInfo space = to_space_info(info);
  CHECK(space.free_bytes == kFreeForAll * kBlockBytes);
  CHECK(space.total_bytes == (kUsed + kFreeForAll) * kBlockBytes);
}

}  // namespace
}  // namespace fjord
