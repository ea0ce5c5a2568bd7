#include "fjord/library/detail/given_documents.h"

#include <algorithm>
#include <fmt/format.h>

namespace fjord {
namespace {

constexpr std::string_view kPrefix = "printed:";
constexpr std::string_view kDigits = "0123456789abcdef";

void append_hex(std::string& text, const GlobalId& gid) {
  for (const std::uint8_t byte : gid.bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
}

Result<GlobalId> gid_from(std::string_view hex) {
  GlobalId gid;
  const Status wrong(StatusCode::InvalidArgument, fmt::format("not the hash of a document id: {}", hex));
  if (hex.size() != 2 * gid.bytes.size()) return wrong;
  for (std::size_t i = 0; i < gid.bytes.size(); ++i) {
    const std::size_t high = kDigits.find(hex[2 * i]);
    const std::size_t low = kDigits.find(hex[2 * i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return wrong;
    gid.bytes[i] = static_cast<std::uint8_t>(high << 4 | low);
  }
  return gid;
}

/// Returns true if the cursor of the slice that contains the position counts it as done. The other cursors are not
/// asked: a cursor counts whole buckets, and a bucket at the border of its slice extends into the next slice.
bool is_done(std::uint64_t position, const std::vector<visitors::SessionCursor>& slices) {
  if (slices.size() == 1) return slices[0].done.contains(position);
  for (std::size_t k = 0; k < slices.size(); ++k) {
    const bool is_of_slice = visitors::PositionRange::slice(k, slices.size()).contains(position);
    if (is_of_slice) return slices[k].done.contains(position);
  }
  return false;
}

}  // namespace

void GivenDocuments::complete(const visitors::PositionRange& range) {
  gids_.erase(gids_.lower_bound({range.first, GlobalId{}}),
              std::find_if(gids_.lower_bound({range.first, GlobalId{}}), gids_.end(),
                           [&](const auto& one) { return one.first > range.last; }));
}

std::string GivenDocuments::to_text(const std::vector<visitors::SessionCursor>& slices) const {
  std::string text(kPrefix);
  for (const auto& [position, gid] : gids_) {
    if (is_done(position, slices)) continue;
    text += ' ';
    append_hex(text, gid);
  }
  return text;
}

bool GivenDocuments::is_one(std::string_view line) { return line.starts_with(kPrefix); }

Result<GivenDocuments> GivenDocuments::parse(std::string_view line) {
  GivenDocuments given;
  std::string_view rest = line.substr(std::min(kPrefix.size(), line.size()));
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(' ', 1), rest.size());
    FJORD_TRY_ASSIGN(const GlobalId gid, gid_from(rest.substr(1, end - 1)));
    given.add(gid);
    rest.remove_prefix(end);
  }
  return given;
}

std::string VisitCursor::to_text() const {
  if (slices.empty()) return {};
  std::string others;
  for (std::size_t k = 1; k < slices.size(); ++k) others += slices[k].to_text() + '\n';
  if (given.size() != 0) others += given.to_text(slices) + '\n';
  visitors::SessionCursor first = slices.front();
  if (!others.empty()) first.seal(others);
  return first.to_text() + '\n' + others;
}

Result<VisitCursor> VisitCursor::parse(std::string_view text) {
  VisitCursor cursor;
  std::size_t number = 1;
  for (std::size_t at = 0; at < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    const std::string where = fmt::format("line {}", number);
    if (GivenDocuments::is_one(line)) {
      auto given = GivenDocuments::parse(line);
      if (!given) return given.error().with_context(where);
      cursor.given = std::move(*given);
    } else {
      auto slice = visitors::SessionCursor::parse(line);
      if (!slice) return slice.error().with_context(where);
      cursor.slices.push_back(std::move(*slice));
    }
    at = end + 1;
  }
  if (cursor.slices.empty()) return Status(StatusCode::InvalidArgument, "there is no cursor of a slice in it");
  const std::size_t first_end = std::min(text.find('\n'), text.size() - 1);
  FJORD_TRY(cursor.slices.front().open_seal(text.substr(first_end + 1)));
  return cursor;
}

}  // namespace fjord
