// What happens to the disks of simulated storage nodes from outside: damage, lost files, a folder of another node.

#include <algorithm>
#include <fmt/format.h>

#include "fjord/sim/sim_cluster.h"
#include "sim_process.h"

namespace fjord::sim {
namespace {

constexpr const char* kFolder = "/data";
constexpr std::uint64_t kPage = 4096;

bool is_slotfile(const std::string& name) { return name.ends_with(".slot"); }
bool is_journal(const std::string& name) { return name.starts_with("journal-"); }

/// Returns the names of a storage node's files, sorted; nothing if it has no folder.
std::vector<std::string> files_of(SimEnv& env) {
  Result<std::vector<std::string>> names = env.list_directory(kFolder);
  if (!names) return {};
  std::sort(names->begin(), names->end());
  return std::move(*names);
}

std::string path_of(const std::string& name) { return std::string(kFolder) + "/" + name; }

/// Returns the content of a file. The file exists, and no fault was injected.
std::string content_of(SimEnv& env, const std::string& path) {
  Result<std::unique_ptr<RandomAccessFile>> file = env.open_random_access(path);
  FJORD_CHECK_MSG(file.has_value(), path);
  std::string content((*file)->size().value(), '\0');
  FJORD_CHECK((*file)->read(0, content).has_value());
  return content;
}

/// Replaces bytes of a file, also of what a loss of power would leave.
void replace(RandomAccessFile& file, std::uint64_t offset, const std::string& bytes) {
  FJORD_CHECK(file.write(offset, bytes).is_ok() && file.sync().is_ok());
}

void destroy(RandomAccessFile& file, const std::string& content, Destruction kind, Random& random) {
  switch (kind) {
    case Destruction::ZeroPage: {
      const std::uint64_t offset = random.below(content.size() / kPage + 1) * kPage;
      const std::uint64_t end = std::min<std::uint64_t>(content.size(), offset + kPage);
      replace(file, offset, std::string(end - offset, '\0'));
      break;
    }
    case Destruction::FlipBits:
      for (std::uint64_t bits = 1 + random.below(4); bits > 0; --bits) {
        const std::uint64_t offset = random.below(content.size());
        replace(file, offset, std::string(1, static_cast<char>(content[offset] ^ (1 << random.below(8)))));
      }
      break;
    case Destruction::InvertHead: {
      std::string head = content.substr(0, 64);
      for (char& byte : head) byte = static_cast<char>(~byte);
      replace(file, 0, head);
      break;
    }
    case Destruction::CutTail:
      FJORD_CHECK(file.truncate(random.below(content.size())).is_ok() && file.sync().is_ok());
      break;
  }
}

std::string_view to_string(Destruction kind) {
  constexpr std::string_view kTexts[] = {"zero a page", "flip bits", "invert the head", "cut off the tail"};
  return kTexts[static_cast<std::size_t>(kind)];
}

bool vanishes(const std::string& name, LostPart part, Random& random) {
  if (part == LostPart::Slotfiles) return is_slotfile(name);
  if (part == LostPart::Journal) return is_journal(name);
  return is_slotfile(name) && random.chance(0.3);
}

}  // namespace

bool SimCluster::destroy_part(const std::string& name, Destruction kind, Random& random) {
  SimEnv& env = process(name).env();
  std::vector<std::pair<std::string, std::string>> files;
  for (const std::string& file : files_of(env)) {
    if (!is_slotfile(file)) continue;
    std::string content = content_of(env, path_of(file));
    if (content.size() > 64) files.emplace_back(path_of(file), std::move(content));
  }
  if (files.empty()) return false;
  const auto& [path, content] = files[random.below(files.size())];
  Result<std::unique_ptr<RandomAccessFile>> file = env.open_random_access(path);
  FJORD_CHECK_MSG(file.has_value(), path);
  scheduler_.trace(fmt::format("{} of {} at {}", to_string(kind), path, name));
  destroy(**file, content, kind, random);
  ++damages_;
  return true;
}

void SimCluster::lose_files(const std::string& name, LostPart part, Random& random) {
  SimEnv& env = process(name).env();
  if (part == LostPart::Everything) {
    scheduler_.trace("the folder of " + name + " is removed");
    FJORD_CHECK(env.remove_all(kFolder).is_ok());
    FJORD_CHECK(env.sync_directory("/").is_ok());
    return;
  }
  const std::vector<std::string> files = files_of(env);
  if (files.empty()) return;
  for (const std::string& file : files) {
    if (!vanishes(file, part, random)) continue;
    scheduler_.trace(path_of(file) + " of " + name + " is removed");
    FJORD_CHECK(env.remove_file(path_of(file)).is_ok());
  }
  FJORD_CHECK(env.sync_directory(kFolder).is_ok());
}

void SimCluster::mix_up(const std::string& name, const std::string& other) {
  scheduler_.trace(name + " gets the folder of " + other);
  wipe(name);
  SimEnv& from = process(other).env();
  SimEnv& to = process(name).env();
  const std::vector<std::string> files = files_of(from);
  if (files.empty()) return;
  FJORD_CHECK(to.create_directories(kFolder).is_ok());
  for (const std::string& file : files) {
    Result<std::unique_ptr<RandomAccessFile>> copy = to.create_random_access(path_of(file));
    FJORD_CHECK_MSG(copy.has_value(), file);
    replace(**copy, 0, content_of(from, path_of(file)));
  }
  FJORD_CHECK(to.sync_directory(kFolder).is_ok() && to.sync_directory("/").is_ok());
}

void SimCluster::lose_power(const std::string& name) {
  scheduler_.trace("loss of power of " + name);
  process(name).crash();
  process(name).note_disturbed();
  process(name).lose_power();
}

void SimCluster::wipe(const std::string& name) {
  scheduler_.trace("wipe of " + name);
  process(name).crash();
  remove_files(name);
}

void SimCluster::remove_files(const std::string& name) {
  process(name).note_disturbed();
  SimEnv& env = process(name).env();
  env.clear_faults();
  for (const char* folder : {"/data", "/search"}) {
    const Status removed = env.remove_all(folder);
    FJORD_CHECK(removed || removed.code() == StatusCode::NotFound);
  }
  FJORD_CHECK(env.sync_directory("/").is_ok());
}

void SimCluster::set_clock_skew(const std::string& name, Duration skew) { process(name).set_skew(skew); }

void SimCluster::slow_disk(const std::string& name, Duration each, std::uint64_t* hits) {
  scheduler_.trace("an operation on the disk of " + name + " takes " + std::to_string(each.count()) + " us");
  if (hits == nullptr) {
    process(name).env().set_listener({});
    return;
  }
  process(name).env().set_listener([this, each, hits](FileOperation operation) {
    ++*hits;
    scheduler_.stall_running(operation == FileOperation::Sync ? each * 10 : each);
  });
}

void SimCluster::limit_disk(const std::string& name, std::uint64_t free_bytes) {
  SimEnv& env = process(name).env();
  scheduler_.trace("the disk of " + name + " has " + std::to_string(free_bytes) + " bytes left");
  env.set_capacity(env.used_bytes() + free_bytes);
}

void SimCluster::shrink_disk(const std::string& name, unsigned used_percent) {
  SimEnv& env = process(name).env();
  scheduler_.trace(fmt::format("{} % of the disk of {} are used", used_percent, name));
  env.set_capacity(env.used_bytes() * 100 / used_percent);
}

void SimCluster::fill_disk(const std::string& name, unsigned used_percent) {
  scheduler_.trace(fmt::format("{} % of the disk of {} are used, mostly by others", used_percent, name));
  process(name).env().set_used_by_others(SimEnvOptions{}.capacity_bytes / 100 * used_percent);
}

void SimCluster::free_disk(const std::string& name) {
  scheduler_.trace("the disk of " + name + " has space again");
  process(name).env().set_capacity(SimEnvOptions{}.capacity_bytes);
  process(name).env().set_used_by_others(0);
}

}  // namespace fjord::sim
