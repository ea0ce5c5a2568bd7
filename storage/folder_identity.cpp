#include "folder_identity.h"

#include <algorithm>
#include <fmt/format.h>

#include "fjord/common/coding.h"
#include "fjord/common/hash.h"
#include "fjord/common/log.h"

namespace fjord::storage {
namespace {

constexpr std::uint32_t kMagic = 0x44494a46;         // "FJID"
constexpr std::uint32_t kSessionMagic = 0x53534a46;  // "FJSS"
constexpr std::uint16_t kVersion = 1;
constexpr std::uint16_t kSessionVersion = 2;
constexpr std::uint16_t kSessionWithoutFlags = 1;
constexpr std::uint8_t kAdopted = 1;
constexpr std::uint8_t kAllSynced = 1;
constexpr const char* kFileName = "identity";
constexpr const char* kSessionFile = "session";

std::string path_in(const std::string& directory) { return directory + "/" + kFileName; }

/// Returns true if the name is one of a file that holds data of an engine.
bool is_data(const std::string& name) {
  return name != kFileName && name != kSessionFile && name != "lock" && !name.ends_with(".tmp");
}

Result<bool> holds_data(Env& env, const std::string& directory) {
  FJORD_TRY_ASSIGN(const std::vector<std::string> names, env.list_directory(directory));
  return std::any_of(names.begin(), names.end(), is_data);
}

std::string framed(std::uint32_t magic, std::uint16_t version, const std::string& content) {
  std::string bytes;
  put_fixed<std::uint32_t>(bytes, magic);
  put_fixed<std::uint16_t>(bytes, version);
  put_fixed<std::uint32_t>(bytes, checksum32(content));
  return bytes + content;
}

struct SessionRecord {
  std::uint64_t folder = 0;
  std::string boot;
  std::uint64_t stamp = 0;
  bool all_synced = false;                  ///< FolderSession::syncs of all incarnations.
  std::vector<std::uint64_t> incarnations;  ///< Oldest first.
};

std::optional<SessionRecord> parse_session(std::string_view bytes) {
  ByteReader reader(bytes);
  const auto magic = reader.fixed<std::uint32_t>();
  const auto version = reader.fixed<std::uint16_t>();
  const auto checksum = reader.fixed<std::uint32_t>();
  const bool is_known = version == kSessionVersion || version == kSessionWithoutFlags;
  if (!reader.ok() || magic != kSessionMagic || !is_known || checksum != checksum32(reader.rest())) return std::nullopt;
  SessionRecord record;
  record.folder = reader.fixed<std::uint64_t>();
  record.boot = reader.string();
  record.stamp = reader.fixed<std::uint64_t>();
  if (version != kSessionWithoutFlags) record.all_synced = (reader.fixed<std::uint8_t>() & kAllSynced) != 0;
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
  put_fixed<std::uint8_t>(content, record.all_synced ? kAllSynced : 0);
  put_varint(content, record.incarnations.size());
  for (const std::uint64_t incarnation : record.incarnations) put_fixed<std::uint64_t>(content, incarnation);
  return framed(kSessionMagic, kSessionVersion, content);
}

}  // namespace

std::string to_string(const FolderIdentity& identity) {
  const std::string cluster =
      identity.cluster == 0 ? std::string("no cluster yet") : fmt::format("cluster {:016x}", identity.cluster);
  return fmt::format("folder {:016x} of {}, {}", identity.folder, identity.node, cluster);
}

Result<std::optional<FolderIdentity>> load_identity(Env& env, const std::string& directory) {
  const std::string path = path_in(directory);
  FJORD_TRY_ASSIGN(const bool there, env.exists(path));
  if (!there) return std::optional<FolderIdentity>();
  FJORD_TRY_ASSIGN(const std::string bytes, read_file(env, path));
  ByteReader reader(bytes);
  const auto magic = reader.fixed<std::uint32_t>();
  const auto version = reader.fixed<std::uint16_t>();
  const auto checksum = reader.fixed<std::uint32_t>();
  const std::string_view content = reader.rest();
  if (!reader.ok() || magic != kMagic || checksum != checksum32(content)) {
    return Status(StatusCode::Corruption,
                  path +
                      " is damaged: it says to which node and cluster the folder belongs. If it is the right "
                      "folder, remove this file: the folder then counts as a new one with the data that it holds");
  }
  if (version != kVersion) {
    return Status(StatusCode::Corruption,
                  fmt::format("{} has format version {}; this program knows {}", path, version, kVersion));
  }
  FolderIdentity identity;
  identity.cluster = reader.fixed<std::uint64_t>();
  identity.folder = reader.fixed<std::uint64_t>();
  identity.adopted = (reader.fixed<std::uint8_t>() & kAdopted) != 0;
  identity.node = reader.string();
  if (!reader.at_end()) return Status(StatusCode::Corruption, path + " is damaged: it is longer than its content");
  return std::optional(identity);
}

Status save_identity(Env& env, const std::string& directory, const FolderIdentity& identity) {
  std::string content;
  put_fixed<std::uint64_t>(content, identity.cluster);
  put_fixed<std::uint64_t>(content, identity.folder);
  put_fixed<std::uint8_t>(content, identity.adopted ? kAdopted : 0);
  put_string(content, identity.node);
  return write_file_atomically(env, path_in(directory), framed(kMagic, kVersion, content), true);
}

Result<FolderIdentity> open_folder(Env& env, const std::string& directory, const std::string& node,
                                   std::uint64_t drawn) {
  FJORD_TRY(env.create_directories(directory));
  FJORD_TRY_ASSIGN(const std::optional<FolderIdentity> known, load_identity(env, directory));
  if (known && known->node != node) {
    return Status(StatusCode::InvalidArgument,
                  fmt::format("{} is {}, and this process is {}: give it the folder of {}, or an empty one, which is "
                              "filled from other nodes",
                              directory, to_string(*known), node, node));
  }
  FJORD_TRY_ASSIGN(const bool has_data, holds_data(env, directory));
  if (known && has_data) return *known;
  // An identity without data is that of a folder that was emptied. It is the first step of opening a folder as well,
  // and a process that ended right after that step has held nothing under the old number.
  FolderIdentity identity{.cluster = 0, .folder = drawn, .node = node, .adopted = has_data};
  FJORD_TRY(save_identity(env, directory, identity));
  return identity;
}

Result<std::vector<std::uint64_t>> begin_session(Env& env, const std::string& directory, const FolderIdentity& folder,
                                                 const FolderSession& session) {
  const std::string path = directory + "/" + kSessionFile;
  std::vector<std::uint64_t> before;
  bool all_synced = session.syncs;
  FJORD_TRY_ASSIGN(const bool there, env.exists(path));
  if (there) {
    FJORD_TRY_ASSIGN(const std::string bytes, read_file(env, path));
    std::optional<SessionRecord> record = parse_session(bytes);
    if (!record) log::warning("storage", "{} is malformed; it counts as none", path);
    const bool is_same = record && record->stamp == session.stamp && record->folder == folder.folder;
    const bool is_same_boot = is_same && !session.boot.empty() && record->boot == session.boot;
    if (is_same_boot || (is_same && record->all_synced)) {
      before = std::move(record->incarnations);
      all_synced = all_synced && record->all_synced;
    }
  }
  if (before.size() == kSessionsMax) before.erase(before.begin());
  SessionRecord now{folder.folder, session.boot, session.stamp, all_synced, before};
  now.incarnations.push_back(session.incarnation);
  FJORD_TRY(write_file_atomically(env, path, encode_session(now), true));
  return before;
}

}  // namespace fjord::storage
