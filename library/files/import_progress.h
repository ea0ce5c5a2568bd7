#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fjord/common/result.h"

namespace fjord {

/// Returns the content of an import's progress file: "fjord-import-2 <input> <records> <checksum>\n". `done` is the
/// number of records at the beginning of `input` that are stored or refused. The checksum is the CRC-32 of what is
/// before it, as eight hexadecimal digits; `python/src/fjord/parquet.py` writes the same.
std::string import_progress_text(std::string_view input, std::uint64_t done);

/// Returns `done` of such a text. Reads also the former form, "fjord-import-1 <input> <records>\n". Errors:
/// InvalidArgument if the text is damaged or about another input.
Result<std::uint64_t> parse_import_progress(std::string_view text, std::string_view input);

}  // namespace fjord
