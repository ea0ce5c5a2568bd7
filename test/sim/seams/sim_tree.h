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
  /// Copies the content of a file, and no entries.
  SimNode(bool directory, const SimFileContent& same) : is_directory(directory), content(same) {}

  const bool is_directory;
  bool linked = false;  ///< True if a name leads to it; unlinked nodes take no space.
  SimFileContent content;
  std::map<std::string, std::shared_ptr<SimNode>> entries;
  std::map<std::string, std::shared_ptr<SimNode>> durable_entries;
};

/// The directory tree of a simulated disk. Changes of names that no directory sync has covered are kept as a list in
/// the order in which they were made, as in an unwritten journal.
class SimTree {
 public:
  explicit SimTree(bool track_durable);

  /// Returns a tree of its own with the same content, synced and unsynced.
  std::unique_ptr<SimTree> copy() const;

  /// Errors: NotFound.
  Result<std::shared_ptr<SimNode>> find(const std::string& path) const;
  Result<std::shared_ptr<SimNode>> find_file(const std::string& path) const;
  Result<std::shared_ptr<SimNode>> find_directory(const std::string& path) const;
  /// Returns the file of that name; creates it if it does not exist.
  Result<std::shared_ptr<SimNode>> find_or_create_file(const std::string& path);
  Status create_directories(const std::string& path);
  Status remove_file(const std::string& path);
  Status remove_all(const std::string& path);
  Status rename(const std::string& from, const std::string& to);
  Status sync_directory(const std::string& path);
  void lose_power(Random& random, bool keep_some);

  /// Changes the size of a file and the used space. All changes of size go through here.
  void resize(SimNode& file, std::uint64_t size);
  void write(SimNode& file, std::uint64_t offset, std::string_view bytes);
  /// Restores the content of the last sync.
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
    std::shared_ptr<SimNode> node;  ///< Null: the name is removed.
  };
  using Operation = std::vector<NameChange>;  ///< Changes of names that a power loss keeps all together or not at all.

  /// Returns the existing directory and the last name of a path.
  Result<Place> place_of(const std::string& path) const;
  /// Returns the node at a place; null if there is none.
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
