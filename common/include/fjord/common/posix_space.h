#pragma once

#include <sys/statvfs.h>

#include "fjord/common/env.h"

namespace fjord {

/// Space of a file system as processes without special rights see it, and as df prints it in percent: what is kept for
/// root is neither free nor part of the whole. With it in the whole, a file system that keeps much for root would count
/// as nearly full while little is in it.
inline SpaceInfo to_space_info(const struct statvfs& info) {
  const std::uint64_t used_blocks = info.f_blocks - info.f_bfree;
  return {.total_bytes = (used_blocks + info.f_bavail) * info.f_frsize, .free_bytes = info.f_bavail * info.f_frsize};
}

}  // namespace fjord
