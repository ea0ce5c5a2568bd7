#include "folder_session.h"

#include <optional>

#include "fjord/common/coding.h"
#include "fjord/common/hash.h"
#include "fjord/common/log.h"

namespace fjord::storage {
namespace {

constexpr std::uint32_t kSessionMagic = 0x53534a46;  // "FJSS"
constexpr std::uint16_t kSessionVersion = 1;

struct SessionRecord {
  std::uint64_t folder = 0;
  std::string boot;
  std::uint64_t stamp = 0;
  std::vector<std::uint64_t> incarnations;  ///< Oldest first.
};

std::string session_path(const std::string& directory) { return directory + "/session"; }

std::optional<SessionRecord> parse_session(std::string_view bytes) {
  ByteReader reader(bytes);
  const auto magic = reader.fixed<std::uint32_t>();
  const auto version = reader.fixed<std::uint16_t>();
  const auto checksum = reader.fixed<std::uint32_t>();
  if (!reader.ok() || magic != kSessionMagic || version != kSessionVersion || checksum != checksum32(reader.rest())) {
    return std::nullopt;
  }
  SessionRecord record;
  record.folder = reader.fixed<std::uint64_t>();
  record.boot = reader.string();
  record.stamp = reader.fixed<std::uint64_t>();
  const std::uint64_t count = reader.varint();
  if (count > kSessionsMax) return std::nullopt;
  for (std::uint64_t i = 0; i < count; ++i) record.incarnations.push_back(reader.fixed<std::uint64_t>());
  return reader.at_end() ? std::optional(std::move(record)) : std::nullopt;
}

std::string encode_session(const SessionRecord& record) {
  std::string content;
  put_fixed<std::uint64_t>(content, record.folder);
  put_string(content, record.boot);
  put_fixed<std::uint64_t>(content, record.stamp);
  put_varint(content, record.incarnations.size());
  for (const std::uint64_t incarnation : record.incarnations) put_fixed<std::uint64_t>(content, incarnation);
  std::string bytes;
  put_fixed<std::uint32_t>(bytes, kSessionMagic);
  put_fixed<std::uint16_t>(bytes, kSessionVersion);
  put_fixed<std::uint32_t>(bytes, checksum32(content));
  return bytes + content;
}

}  // namespace

Result<std::vector<std::uint64_t>> begin_session(Env& env, const std::string& directory, const FolderIdentity& folder,
                                                 const FolderSession& session) {
  const std::string path = session_path(directory);
  std::vector<std::uint64_t> before;
  FJORD_TRY_ASSIGN(const bool there, env.exists(path));
  if (there) {
    FJORD_TRY_ASSIGN(const std::string bytes, read_file(env, path));
    std::optional<SessionRecord> record = parse_session(bytes);
    if (!record) log::warning("storage", "{} is malformed; it counts as none", path);
    const bool is_same = record && !session.boot.empty() && record->boot == session.boot &&
                         record->stamp == session.stamp && record->folder == folder.folder;
    if (is_same) before = std::move(record->incarnations);
  }
  if (before.size() == kSessionsMax) before.erase(before.begin());
  SessionRecord now{folder.folder, session.boot, session.stamp, before};
  now.incarnations.push_back(session.incarnation);
  FJORD_TRY(write_file_atomically(env, path, encode_session(now), true));
  return before;
}

}  // namespace fjord::storage
