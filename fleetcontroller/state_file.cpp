#include "state_file.h"

#include "fjord/common/coding.h"
#include "fjord/common/hash.h"

namespace fjord::fleetcontroller {
namespace {

constexpr std::uint32_t kMagic = 0x53434a46;  // "FJCS"
constexpr std::uint16_t kVersion = 1;
constexpr const char* kFileName = "/fleetcontroller.state";

}  // namespace

Result<PersistedState> load_state(Env& env, const std::string& directory) {
  std::string path = directory + kFileName;
  FJORD_TRY_ASSIGN(bool there, env.exists(path));
  if (!there) return PersistedState{};
  FJORD_TRY_ASSIGN(std::string bytes, read_file(env, path));
  ByteReader reader(bytes);
  auto magic = reader.fixed<std::uint32_t>();
  auto version = reader.fixed<std::uint16_t>();
  auto checksum = reader.fixed<std::uint32_t>();
  std::string_view content = reader.rest();
  if (!reader.ok() || magic != kMagic || checksum != checksum32(content)) {
    return Status(StatusCode::Corruption, path + " is damaged");
  }
  if (version != kVersion) {
    return Status(StatusCode::Corruption, path + " has format version " + std::to_string(version) +
                                              "; this program knows " + std::to_string(kVersion));
  }
  PersistedState state;
  state.state = reader.string();
  state.schema_version = reader.varint();
  for (std::uint64_t n = reader.varint(); n > 0 && reader.ok(); --n) state.schemas.emplace_back(reader.string());
  for (std::uint64_t n = reader.varint(); n > 0 && reader.ok(); --n) {
    std::string name(reader.string());
    state.incarnations[name] = reader.fixed<std::uint64_t>();
  }
  if (!reader.at_end()) return Status(StatusCode::Corruption, path + " is damaged");
  return state;
}

Status save_state(Env& env, const std::string& directory, const PersistedState& state) {
  std::string content;
  put_string(content, state.state);
  put_varint(content, state.schema_version);
  put_varint(content, state.schemas.size());
  for (const std::string& schema : state.schemas) put_string(content, schema);
  put_varint(content, state.incarnations.size());
  for (const auto& [name, incarnation] : state.incarnations) {
    put_string(content, name);
    put_fixed<std::uint64_t>(content, incarnation);
  }
  std::string bytes;
  put_fixed<std::uint32_t>(bytes, kMagic);
  put_fixed<std::uint16_t>(bytes, kVersion);
  put_fixed<std::uint32_t>(bytes, checksum32(content));
  bytes += content;
  return write_file_atomically(env, directory + kFileName, bytes, true);
}

}  // namespace fjord::fleetcontroller
