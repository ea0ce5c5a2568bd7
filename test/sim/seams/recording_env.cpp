#include "fjord/sim/recording_env.h"

#include <algorithm>
#include <cstring>
#include <fmt/core.h>

#include "fjord/common/hash.h"

namespace fjord::sim {

namespace {

constexpr std::uint64_t kSector = 512;

Status ended(const std::string& path) { return Status(StatusCode::IoError, path + ": the process has ended"); }
Status not_found(const std::string& path) { return Status(StatusCode::NotFound, path + ": no such file"); }

std::string parent_of(const std::string& path) { return path.substr(0, path.rfind('/')); }
std::string normal(const std::string& path) { return path.starts_with('/') ? path : "/" + path; }

void write_into(std::string& content, std::uint64_t offset, std::string_view bytes) {
  if (bytes.empty()) return;
  if (content.size() < offset + bytes.size()) content.resize(offset + bytes.size(), '\0');
  std::memcpy(content.data() + offset, bytes.data(), bytes.size());
}

}  // namespace

std::uint64_t hash_of(const DiskImage& image) {
  std::uint64_t hash = 0;
  for (const auto& [path, content] : image) hash = hash64(content, hash64(path, hash));
  return hash;
}

/// Lifetime: `env` outlives it.
class RecordingEnv::File final : public RandomAccessFile {
 public:
  File(RecordingEnv& env, std::shared_ptr<Node> node, std::string path)
      : env_(env), node_(std::move(node)), path_(std::move(path)) {}

  Result<std::size_t> read(std::uint64_t offset, std::span<char> into) const override {
    const std::string& content = node_->content;
    if (offset >= content.size()) return std::size_t{0};
    const std::size_t n = std::min<std::size_t>(into.size(), content.size() - offset);
    std::memcpy(into.data(), content.data() + offset, n);
    return n;
  }
  Status write(std::uint64_t offset, std::string_view data) override {
    FJORD_TRY(env_.record({.kind = Kind::Write,
                           .node = node_,
                           .path = path_,
                           .target = {},
                           .offset = offset,
                           .bytes = std::string(data)}));
    write_into(node_->content, offset, data);
    return Status::ok();
  }
  Status write_gather(std::uint64_t offset, std::span<const std::string_view> pieces) override {
    std::string whole;
    for (const std::string_view piece : pieces) whole += piece;
    return write(offset, whole);
  }
  void start_writeback() override {}
  std::string_view mapped(std::uint64_t /*end*/) override { return {}; }
  void will_need(std::uint64_t /*offset*/, std::uint64_t /*length*/) const override {}
  Status sync() override {
    return env_.record({.kind = Kind::Sync, .node = node_, .path = path_, .target = {}, .bytes = {}});
  }
  Result<std::uint64_t> size() const override { return std::uint64_t{node_->content.size()}; }
  Status allocate(std::uint64_t size) override { return truncate(size); }
  Status truncate(std::uint64_t size) override {
    FJORD_TRY(
        env_.record({.kind = Kind::Resize, .node = node_, .path = path_, .target = {}, .offset = size, .bytes = {}}));
    node_->content.resize(size, '\0');
    return Status::ok();
  }

 private:
  RecordingEnv& env_;
  std::shared_ptr<Node> node_;
  std::string path_;
};

RecordingEnv::RecordingEnv(const DiskImage& durable) {
  for (const auto& [path, content] : durable) {
    auto node = std::make_shared<Node>();
    node->content = content;
    initial_contents_[node.get()] = content;
    names_[path] = std::move(node);
    directories_.insert(parent_of(path));
  }
  initial_names_ = names_;
}

RecordingEnv::~RecordingEnv() = default;

Status RecordingEnv::record(Change change) {
  if (changes_.size() >= end_) return ended(change.path);
  changes_.push_back(std::move(change));
  return Status::ok();
}

Result<std::unique_ptr<RandomAccessFile>> RecordingEnv::open_random_access(const std::string& path) {
  const auto found = names_.find(normal(path));
  if (found == names_.end()) return not_found(path);
  return std::unique_ptr<RandomAccessFile>(std::make_unique<File>(*this, found->second, path));
}

Result<std::unique_ptr<RandomAccessFile>> RecordingEnv::create_random_access(const std::string& path) {
  std::shared_ptr<Node>& node = names_[normal(path)];
  if (node == nullptr) {
    auto made = std::make_shared<Node>();
    const Status status = record({.kind = Kind::Create, .node = made, .path = normal(path), .target = {}, .bytes = {}});
    if (!status) {
      names_.erase(normal(path));
      return status;
    }
    node = std::move(made);
  } else {
    FJORD_TRY(record({.kind = Kind::Resize, .node = node, .path = path, .target = {}, .offset = 0, .bytes = {}}));
    node->content.clear();
  }
  return std::unique_ptr<RandomAccessFile>(std::make_unique<File>(*this, node, path));
}

Result<bool> RecordingEnv::exists(const std::string& path) {
  return names_.contains(normal(path)) || directories_.contains(normal(path));
}

Result<std::vector<std::string>> RecordingEnv::list_directory(const std::string& path) {
  if (!directories_.contains(normal(path))) return not_found(path);
  const std::string prefix = normal(path) + "/";
  std::vector<std::string> names;
  for (const auto& [name, node] : names_) {
    if (name.starts_with(prefix)) names.push_back(name.substr(prefix.size()));
  }
  return names;
}

Status RecordingEnv::create_directories(const std::string& path) {
  directories_.insert(normal(path));
  return Status::ok();
}

Status RecordingEnv::remove_file(const std::string& path) {
  if (!names_.contains(normal(path))) return not_found(path);
  FJORD_TRY(record({.kind = Kind::Remove, .node = nullptr, .path = normal(path), .target = {}, .bytes = {}}));
  names_.erase(normal(path));
  return Status::ok();
}

Status RecordingEnv::remove_all(const std::string& path) {
  std::vector<std::string> below;
  for (const auto& [name, node] : names_) {
    if (name == normal(path) || name.starts_with(normal(path) + "/")) below.push_back(name);
  }
  for (const std::string& name : below) FJORD_TRY(remove_file(name));
  return Status::ok();
}

Status RecordingEnv::rename(const std::string& from, const std::string& to) {
  if (!names_.contains(normal(from))) return not_found(from);
  Change change{.kind = Kind::Rename, .node = nullptr, .path = normal(from), .target = normal(to), .bytes = {}};
  FJORD_TRY(record(change));
  apply_name(names_, change);
  return Status::ok();
}

Status RecordingEnv::sync_directory(const std::string& path) {
  return record({.kind = Kind::SyncDirectory, .node = nullptr, .path = normal(path), .target = {}, .bytes = {}});
}

Result<SpaceInfo> RecordingEnv::space(const std::string&) {
  constexpr std::uint64_t kMuch = std::uint64_t{1} << 40;
  return SpaceInfo{.total_bytes = kMuch, .free_bytes = kMuch};
}

/// Applies a change of names. No effect if its file does not exist because an earlier change was lost.
void RecordingEnv::apply_name(Names& names, const Change& change) {
  if (change.kind == Kind::Create) {
    names[change.path] = change.node;
  } else if (change.kind == Kind::Remove) {
    names.erase(change.path);
  } else if (const auto found = names.find(change.path); found != names.end() && change.path != change.target) {
    names[change.target] = found->second;
    names.erase(change.path);
  }
}

void RecordingEnv::apply_data(Contents& contents, const Change& change) {
  std::string& content = contents[change.node.get()];
  if (change.kind == Kind::Write) {
    write_into(content, change.offset, change.bytes);
  } else {
    content.resize(change.offset, '\0');
  }
}

DiskImage RecordingEnv::image_of(const Names& names, const Contents& contents) {
  DiskImage image;
  for (const auto& [path, node] : names) {
    const auto content = contents.find(node.get());
    image[path] = content == contents.end() ? std::string() : content->second;
  }
  return image;
}

void RecordingEnv::visit_process_ends(std::size_t changes, const Visitor& visit) const {
  Names names = initial_names_;
  Contents contents = initial_contents_;
  for (std::size_t i = 0; i < changes; ++i) {
    const Change& change = changes_[i];
    if (change.kind == Kind::Write || change.kind == Kind::Resize) {
      apply_data(contents, change);
    } else if (change.kind != Kind::Sync && change.kind != Kind::SyncDirectory) {
      apply_name(names, change);
    }
  }
  visit(image_of(names, contents), fmt::format("after {} changes", changes));
  if (changes == changes_.size() || changes_[changes].kind != Kind::Write) return;
  const Change& next = changes_[changes];
  std::size_t before = 0;
  for (const std::size_t length : {std::size_t{1}, next.bytes.size() / 2, next.bytes.size() - 1}) {
    if (length <= before || length >= next.bytes.size()) continue;
    before = length;
    Contents torn = contents;
    write_into(torn[next.node.get()], next.offset, std::string_view(next.bytes).substr(0, length));
    visit(image_of(names, torn), fmt::format("after {} changes and {} bytes", changes, length));
  }
}

RecordingEnv::Pending RecordingEnv::pending_after(std::size_t changes) const {
  Pending pending{.names = initial_names_, .contents = initial_contents_, .name_changes = {}, .data_changes = {}};
  for (std::size_t i = 0; i < changes; ++i) {
    const Change& change = changes_[i];
    switch (change.kind) {
      case Kind::Write:
      case Kind::Resize:
        pending.data_changes.push_back(&change);
        break;
      case Kind::Sync:
        std::erase_if(pending.data_changes, [&](const Change* earlier) {
          if (earlier->node != change.node) return false;
          apply_data(pending.contents, *earlier);
          return true;
        });
        break;
      case Kind::SyncDirectory:
        std::erase_if(pending.name_changes, [&](const Change* earlier) {
          if (parent_of(earlier->path) != change.path) return false;
          apply_name(pending.names, *earlier);
          return true;
        });
        break;
      default:
        pending.name_changes.push_back(&change);
    }
  }
  return pending;
}

std::vector<RecordingEnv::Choice> RecordingEnv::choices_of(const Pending& pending) {
  std::vector<Choice> data{{"no data", pending.contents}};
  const auto choose = [&](std::string words, const std::function<bool(std::size_t)>& keep) {
    data.push_back({std::move(words), pending.contents});
    for (std::size_t i = 0; i < pending.data_changes.size(); ++i) {
      if (keep(i)) apply_data(data.back().contents, *pending.data_changes[i]);
    }
  };
  choose("all data", [](std::size_t) { return true; });
  const Contents all = data.back().contents;
  for (std::size_t one = 0; one < pending.data_changes.size(); ++one) {
    choose(fmt::format("data before {}", one), [&](std::size_t i) { return i < one; });
    choose(fmt::format("data but for {}", one), [&](std::size_t i) { return i != one; });
    choose(fmt::format("only data {}", one), [&](std::size_t i) { return i == one; });
  }
  // Next: the last write of each file is torn, and sizes survive apart from data.
  std::set<const Node*> seen;
  for (std::size_t i = pending.data_changes.size(); i-- > 0;) {
    const Change& last = *pending.data_changes[i];
    if (!seen.insert(last.node.get()).second) continue;
    const auto durable = pending.contents.find(last.node.get());
    const std::string before = durable == pending.contents.end() ? std::string() : durable->second;
    const std::string& after = all.at(last.node.get());
    data.push_back({fmt::format("all data, of {} only the size", last.path), all});
    data.back().contents[last.node.get()] = before.substr(0, std::min(before.size(), after.size()));
    data.back().contents[last.node.get()].resize(after.size(), '\0');
    data.push_back({fmt::format("all data, of {} not the size", last.path), all});
    data.back().contents[last.node.get()].resize(before.size(), '\0');
    if (last.kind != Kind::Write || last.bytes.empty()) continue;
    const std::uint64_t end = last.offset + last.bytes.size();
    for (std::uint64_t cut = (last.offset / kSector + 1) * kSector; cut < end; cut += kSector) {
      const std::uint64_t head = cut - last.offset;
      for (const bool first : {true, false}) {
        choose(fmt::format("all data, of {} the {} {} bytes", i, first ? "first" : "last", first ? head : end - cut),
               [&](std::size_t other) { return other != i; });
        std::string& content = data.back().contents[last.node.get()];
        const std::string_view bytes = last.bytes;
        first ? write_into(content, last.offset, bytes.substr(0, head)) : write_into(content, cut, bytes.substr(head));
      }
    }
  }
  return data;
}

void RecordingEnv::visit_power_losses(std::size_t changes, const Visitor& visit) const {
  const Pending pending = pending_after(changes);
  const std::vector<Choice> data = choices_of(pending);
  std::set<std::uint64_t> visited;
  const auto visit_once = [&](const Names& names, const Choice& choice, const std::string& words) {
    const DiskImage image = image_of(names, choice.contents);
    if (visited.insert(hash_of(image)).second) {
      visit(image, fmt::format("after {} changes: {}, {}", changes, choice.words, words));
    }
  };
  const std::size_t count = pending.name_changes.size();
  for (std::size_t kept = 0; kept <= count; ++kept) {
    Names names = pending.names;
    for (std::size_t i = 0; i < kept; ++i) apply_name(names, *pending.name_changes[i]);
    // All combinations would be too many: if only some name changes are durable, only two states of the data are tried.
    const std::size_t choices = kept == 0 || kept == count ? data.size() : 2;
    for (std::size_t i = 0; i < choices; ++i) visit_once(names, data[i], fmt::format("names {} of {}", kept, count));
  }
  for (std::size_t dropped = 0; dropped + 1 < count; ++dropped) {
    Names names = pending.names;
    for (std::size_t i = 0; i < count; ++i) {
      if (i != dropped) apply_name(names, *pending.name_changes[i]);
    }
    for (std::size_t i = 0; i < 2; ++i) visit_once(names, data[i], fmt::format("names but for {}", dropped));
  }
}

}  // namespace fjord::sim
