#include "sim_tree.h"

#include <algorithm>
#include <set>

namespace fjord::sim {

namespace {

std::vector<std::string> split(const std::string& path) {
  std::vector<std::string> names;
  std::size_t from = 0;
  while (from <= path.size()) {
    const std::size_t to = std::min(path.find('/', from), path.size());
    std::string name = path.substr(from, to - from);
    if (!name.empty() && name != ".") names.push_back(std::move(name));
    from = to + 1;
  }
  return names;
}

Status not_found(const std::string& path) { return Status(StatusCode::NotFound, path + ": no such file or directory"); }
Status is_directory(const std::string& path) { return Status(StatusCode::IoError, path + ": is a directory"); }
Status not_directory(const std::string& path) { return Status(StatusCode::IoError, path + ": not a directory"); }

}  // namespace

SimTree::SimTree(bool track_durable) : track_(track_durable), root_(std::make_shared<SimNode>(true, track_durable)) {
  root_->linked = true;
}

namespace {

/// Copies nodes so that the copies lead to each other as the originals do. Nodes without a name are copied too, because
/// an unsynced change may bring them back.
class NodeCopier {
 public:
  std::shared_ptr<SimNode> copy(const std::shared_ptr<SimNode>& node) {
    if (node == nullptr) return nullptr;
    if (const auto found = copies_.find(node.get()); found != copies_.end()) return found->second;
    auto made = std::make_shared<SimNode>(node->is_directory, node->content);
    made->linked = node->linked;
    copies_.emplace(node.get(), made);
    for (const auto& [name, child] : node->entries) made->entries.emplace(name, copy(child));
    for (const auto& [name, child] : node->durable_entries) made->durable_entries.emplace(name, copy(child));
    return made;
  }

 private:
  std::map<const SimNode*, std::shared_ptr<SimNode>> copies_;
};

}  // namespace

std::unique_ptr<SimTree> SimTree::copy() const {
  auto made = std::make_unique<SimTree>(track_);
  NodeCopier copier;
  made->root_ = copier.copy(root_);
  made->used_bytes_ = used_bytes_;
  for (const Operation& operation : unsynced_) {
    Operation& same = made->unsynced_.emplace_back();
    for (const NameChange& change : operation) {
      same.push_back({copier.copy(change.directory), change.name, copier.copy(change.node)});
    }
  }
  return made;
}

Result<std::shared_ptr<SimNode>> SimTree::find(const std::string& path) const {
  std::shared_ptr<SimNode> node = root_;
  for (const std::string& name : split(path)) {
    const auto it = node->entries.find(name);
    if (it == node->entries.end()) return not_found(path);
    node = it->second;
  }
  return node;
}

Result<std::shared_ptr<SimNode>> SimTree::find_file(const std::string& path) const {
  FJORD_TRY_ASSIGN(auto node, find(path));
  if (node->is_directory) return is_directory(path);
  return node;
}

Result<std::shared_ptr<SimNode>> SimTree::find_directory(const std::string& path) const {
  FJORD_TRY_ASSIGN(auto node, find(path));
  if (!node->is_directory) return not_directory(path);
  return node;
}

Result<SimTree::Place> SimTree::place_of(const std::string& path) const {
  const std::vector<std::string> names = split(path);
  if (names.empty()) return is_directory(path);
  Place place{root_, names.back()};
  for (std::size_t i = 0; i + 1 < names.size(); ++i) {
    const auto it = place.directory->entries.find(names[i]);
    if (it == place.directory->entries.end()) return not_found(path);
    if (!it->second->is_directory) return not_directory(path);
    place.directory = it->second;
  }
  return place;
}

std::shared_ptr<SimNode> SimTree::lookup(const Place& place) {
  const auto it = place.directory->entries.find(place.name);
  return it == place.directory->entries.end() ? nullptr : it->second;
}

Result<std::shared_ptr<SimNode>> SimTree::find_or_create_file(const std::string& path) {
  FJORD_TRY_ASSIGN(const Place place, place_of(path));
  std::shared_ptr<SimNode> node = lookup(place);
  if (node && node->is_directory) return is_directory(path);
  if (!node) {
    node = std::make_shared<SimNode>(false, track_);
    apply({{place.directory, place.name, node}});
  }
  return node;
}

Status SimTree::create_directories(const std::string& path) {
  Place place{root_, {}};
  for (std::string& name : split(path)) {
    place.name = std::move(name);
    std::shared_ptr<SimNode> node = lookup(place);
    if (node && !node->is_directory) return not_directory(path);
    if (!node) {
      node = std::make_shared<SimNode>(true, track_);
      apply({{place.directory, place.name, node}});
    }
    place.directory = std::move(node);
  }
  return Status::ok();
}

Status SimTree::remove_file(const std::string& path) {
  FJORD_TRY_ASSIGN(const Place place, place_of(path));
  const std::shared_ptr<SimNode> node = lookup(place);
  if (!node) return not_found(path);
  if (node->is_directory) return is_directory(path);
  apply({{place.directory, place.name, nullptr}});
  return Status::ok();
}

Status SimTree::remove_all(const std::string& path) {
  const Result<Place> place = place_of(path);
  if (!place) return place.error().code() == StatusCode::NotFound ? Status::ok() : place.error();
  if (lookup(*place)) remove_tree(*place);
  return Status::ok();
}

void SimTree::remove_tree(const Place& place) {
  const std::shared_ptr<SimNode> node = lookup(place);
  while (!node->entries.empty()) remove_tree({node, node->entries.begin()->first});
  apply({{place.directory, place.name, nullptr}});
}

Status SimTree::rename(const std::string& from, const std::string& to) {
  FJORD_TRY_ASSIGN(const Place source, place_of(from));
  FJORD_TRY_ASSIGN(const Place target, place_of(to));
  const std::shared_ptr<SimNode> node = lookup(source);
  if (!node) return not_found(from);
  const std::shared_ptr<SimNode> replaced = lookup(target);
  if (replaced == node) return Status::ok();
  if (replaced && replaced->is_directory && !node->is_directory) return is_directory(to);
  if (replaced && !replaced->is_directory && node->is_directory) return not_directory(to);
  if (replaced && !replaced->entries.empty()) return Status(StatusCode::IoError, to + ": directory not empty");
  const std::vector<std::string> from_names = split(from);
  const std::vector<std::string> to_names = split(to);
  if (to_names.size() > from_names.size() && std::equal(from_names.begin(), from_names.end(), to_names.begin())) {
    return Status(StatusCode::InvalidArgument, from + ": cannot be moved into itself");
  }
  apply({{source.directory, source.name, nullptr}, {target.directory, target.name, node}});
  return Status::ok();
}

void SimTree::apply(Operation operation) {
  for (const NameChange& change : operation) {
    std::map<std::string, std::shared_ptr<SimNode>>& entries = change.directory->entries;
    if (const auto it = entries.find(change.name); it != entries.end()) {
      set_linked(*it->second, false);
      entries.erase(it);
    }
    if (change.node) {
      entries.emplace(change.name, change.node);
      set_linked(*change.node, true);
    }
  }
  if (track_) unsynced_.push_back(std::move(operation));
}

void SimTree::set_linked(SimNode& node, bool linked) {
  if (node.linked == linked) return;
  node.linked = linked;
  used_bytes_ = linked ? used_bytes_ + node.content.size() : used_bytes_ - node.content.size();
  for (const auto& [name, child] : node.entries) set_linked(*child, linked);
}

Status SimTree::sync_directory(const std::string& path) {
  FJORD_TRY_ASSIGN(const auto directory, find_directory(path));
  // Syncs the directory, and also the changes on which its own depend: a rename from another directory makes earlier
  // changes of its source durable.
  std::set<const SimNode*> wanted = {directory.get()};
  std::vector<bool> covered(unsynced_.size());
  for (std::size_t i = unsynced_.size(); i-- > 0;) {
    const Operation& operation = unsynced_[i];
    covered[i] = std::any_of(operation.begin(), operation.end(),
                             [&](const NameChange& change) { return wanted.count(change.directory.get()) != 0; });
    if (!covered[i]) continue;
    for (const NameChange& change : operation) wanted.insert(change.directory.get());
  }
  std::vector<Operation> rest;
  for (std::size_t i = 0; i < unsynced_.size(); ++i) {
    if (covered[i]) {
      make_durable(unsynced_[i]);
    } else {
      rest.push_back(std::move(unsynced_[i]));
    }
  }
  unsynced_ = std::move(rest);
  return Status::ok();
}

void SimTree::make_durable(const Operation& operation) {
  for (const NameChange& change : operation) {
    if (change.node) {
      change.directory->durable_entries[change.name] = change.node;
    } else {
      change.directory->durable_entries.erase(change.name);
    }
  }
}

void SimTree::lose_power(Random& random, bool keep_some) {
  const std::size_t kept = keep_some && random.chance(0.5) ? random.below(unsynced_.size() + 1) : 0;
  for (std::size_t i = 0; i < kept; ++i) make_durable(unsynced_[i]);
  unsynced_.clear();
  std::vector<SimNode*> pending = {root_.get()};
  while (!pending.empty()) {
    SimNode& node = *pending.back();
    pending.pop_back();
    node.entries = node.durable_entries;
    if (!node.is_directory) node.content.lose_power(random, keep_some);
    for (const auto& [name, child] : node.entries) pending.push_back(child.get());
  }
  used_bytes_ = 0;
  relink(*root_);
}

void SimTree::relink(SimNode& node) {
  node.linked = true;
  used_bytes_ += node.content.size();
  for (const auto& [name, child] : node.entries) relink(*child);
}

void SimTree::resize(SimNode& file, std::uint64_t size) {
  if (file.linked) used_bytes_ += size - file.content.size();
  file.content.resize(size);
}

void SimTree::revert(SimNode& file) {
  const std::uint64_t before = file.content.size();
  file.content.fail_sync_old_data();
  if (file.linked) used_bytes_ += file.content.size() - before;
}

void SimTree::write(SimNode& file, std::uint64_t offset, std::string_view bytes) {
  const std::uint64_t before = file.content.size();
  file.content.write(offset, bytes);
  if (file.linked) used_bytes_ += file.content.size() - before;
}

}  // namespace fjord::sim
