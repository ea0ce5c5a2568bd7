#include <cstdint>
#include <string_view>

#include "fjord/cluster/cluster_state.h"
#include "fjord/document/docblock.h"

/// Reads the input as a docblock, and parses it as a cluster state.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  fjord::DocBlockReader reader(bytes);
  std::size_t sum = 0;
  while (const auto entry = reader.next()) sum += entry->header.size() + entry->body.size();
  if (sum > size) __builtin_trap();
  static_cast<void>(fjord::ClusterState::parse(bytes).has_value());
  return 0;
}
