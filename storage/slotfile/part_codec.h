#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fjord/common/result.h"
#include "fjord/storage/spi/persistence_provider.h"

namespace fjord::slotfile {

/// Additional room that append_compressed() needs besides the bytes themselves.
inline constexpr std::size_t kCompressedExtraBytes = sizeof(std::uint32_t);

/// Appends `bytes` to `into`, compressed as `wanted` says if that saves at least as much as `wanted` requires.
/// Compressed form: the plain length as u32, then the compressed bytes. Returns the compression used.
spi::Compression append_compressed(std::string& into, std::string_view bytes, const PartCompression& wanted);
/// Reverses append_compressed(). Replaces the content of `into`. Errors: Corruption.
Status decompress(std::string_view stored, spi::Compression compression, std::string& into);

}  // namespace fjord::slotfile
