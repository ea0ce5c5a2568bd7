#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/result.h"
#include "sim_file.h"

namespace fjord::sim {

/// A file or a directory.
struct SimNode {
  SimNode(bool directory, bool track_durable) : is_directory(directory), content(track_durable) {}

  const bool is_directory;
  bool linked = false;  ///< reachable by a name; what is not takes no space
  SimFileContent content;
  std::map<std::string, std::shared_ptr<SimNode>> entries;
  std::map<std::string, std::shared_ptr<SimNode>> durable_entries;
};

/// The names of a simulated disk. Changes of names that no directory sync covered are kept as a list in the order in
/// which they were made, like a journal that was not written yet.
class SimTree {
 public:
  explicit SimTree(bool track_durable);

  /// Errors: NotFound.
  Result<std::shared_ptr<SimNode>> find(const std::string& path) const;
  Result<std::shared_ptr<SimNode>> find_file(const std::string& path) const;
  Result<std::shared_ptr<SimNode>> find_directory(const std::string& path) const;
  /// The file of that name, made if it is not there.
  Result<std::shared_ptr<SimNode>> find_or_create_file(const std::string& path);
  Status create_directories(const std::string& path);
  Status remove_file(const std::string& path);
  Status remove_all(const std::string& path);
  Status rename(const std::string& from, const std::string& to);
  Status sync_directory(const std::string& path);
  void lose_power(Random& random, bool keep_some);

  /// All changes of a file's size go through here, which counts the space.
  void resize(SimNode& file, std::uint64_t size);
  void write(SimNode& file, std::uint64_t offset, std::string_view bytes);
  /// Back to the content of the last sync.
  void revert(SimNode& file);
  std::uint64_t used_bytes() const { return used_bytes_; }

 private:
  struct Place {
    std::shared_ptr<SimNode> directory;
    std::string name;
  };
  struct NameChange {
    std::shared_ptr<SimNode> directory;
    std::string name;
    std::shared_ptr<SimNode> node;  ///< null: removed
  };
  using Operation = std::vector<NameChange>;  ///< survives as a whole or not at all

  /// The existing directory that a path's last name belongs to.
  Result<Place> place_of(const std::string& path) const;
  /// What a place holds now; null if nothing.
  static std::shared_ptr<SimNode> lookup(const Place& place);
  void apply(Operation operation);
  void remove_tree(const Place& place);
  static void make_durable(const Operation& operation);
  void relink(SimNode& node);
  void set_linked(SimNode& node, bool linked);

  bool track_;
  std::shared_ptr<SimNode> root_;
  std::vector<Operation> unsynced_;
  std::uint64_t used_bytes_ = 0;
};

}  // namespace fjord::sim
