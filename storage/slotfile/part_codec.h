#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fjord/common/result.h"
#include "fjord/storage/spi/persistence_provider.h"

namespace fjord::slotfile {

/// What append_compressed() needs room for besides the bytes.
inline constexpr std::size_t kCompressedExtraBytes = sizeof(std::uint32_t);

/// Appends `bytes` to `into`, compressed as wanted if that makes them smaller by as much as is wanted: their plain
/// length as u32, and the compressed bytes. Returns what was done.
spi::Compression append_compressed(std::string& into, std::string_view bytes, const PartCompression& wanted);
/// The inverse; `into` loses its previous content. Errors: Corruption.
Status decompress(std::string_view stored, spi::Compression compression, std::string& into);

}  // namespace fjord::slotfile
