#include "fjord/storage/slotfile/slotfile_provider.h"

#include <bit>
#include <optional>
#include <utility>

#include "catalog.h"
#include "engine.h"
#include "import_v1.h"

namespace fjord {

Result<std::unique_ptr<SlotfileProvider>> SlotfileProvider::open(Env& env, const SlotfileOptions& options) {
  FJORD_TRY(slotfile::check_limits(options.limits));
  constexpr unsigned kStripesMost = 256;
  constexpr std::uint64_t kSegmentLeast = 4096;
  if (!std::has_single_bit(options.stripes) || options.stripe >= options.stripes || options.stripes > kStripesMost) {
    return Status(StatusCode::InvalidArgument, "stripes must be a power of two up to 256, and stripe less than it");
  }
  if (options.open_files_max == 0 || options.directory.empty() || options.journal_segment_bytes < kSegmentLeast) {
    return Status(StatusCode::InvalidArgument,
                  "open_files_max and directory must be set, and journal_segment_bytes be at least 4 KiB");
  }
  auto engine = std::make_unique<slotfile::Engine>(env, options);
  FJORD_TRY(engine->recover());
  FJORD_TRY(slotfile::import_version_1(*engine));
  return std::unique_ptr<SlotfileProvider>(std::move(engine));
}

Result<std::optional<unsigned>> SlotfileProvider::stripes_of(Env& env, const std::string& directory) {
  SlotfileOptions options;
  options.directory = directory;
  slotfile::EngineContext context(env, options);
  FJORD_TRY_ASSIGN(const slotfile::LoadedCatalog loaded, slotfile::load_catalog(context));
  return loaded.found ? std::optional(loaded.stripes) : std::nullopt;
}

Result<std::unique_ptr<spi::PersistenceProvider>> open_slotfile_provider(Env& env, const SlotfileOptions& options) {
  FJORD_TRY_ASSIGN(auto provider, SlotfileProvider::open(env, options));
  return std::unique_ptr<spi::PersistenceProvider>(std::move(provider));
}

}  // namespace fjord
