#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "fjord/visitors/visitor.h"

/// What a library of visitors includes. The whole of one:
///
///     class Count final : public fjord::visitors::Visitor {
///      public:
///       fjord::Status visit(fjord::BucketId, std::string docblock) override {
///         fjord::DocBlockReader reader(docblock);
///         while (reader.next()) ++count_;
///         return fjord::Status::ok();
///       }
///       void end_bucket(fjord::BucketId, fjord::visitors::BucketDone done) override {
///         done({fjord::Status::ok(), std::to_string(std::exchange(count_, 0))});
///       }
///      private:
///       int count_ = 0;
///     };
///
///     FJORD_PLUGIN(registry) { registry.add<Count>("count", "Counts documents"); }
///
/// Built against an installed Fjord:
///
///     find_package(fjord REQUIRED)
///     fjord_add_plugin(count SOURCES count.cpp)
///
/// A storage node runs each visitor of a plugin in a process of its own (fjord-plugin-host): whatever it does there,
/// throwing, looping, leaking or crashing, ends its visit with an error that says so, and nothing else.
namespace fjord::plugins {

/// Of this header and all that it includes. A library with another one is refused.
inline constexpr std::uint32_t kPluginInterface = 1;

/// Takes what a library offers. Threading: one thread, that of the host.
class PluginRegistry {
 public:
  struct Entry {
    std::string help;
    visitors::VisitorFactory factory;
  };

  /// The last one of a name counts. `name` is what `fjord visit --visitor` and createVisitor say.
  void add(std::string name, std::string help, visitors::VisitorFactory factory) {
    entries_[std::move(name)] = Entry{std::move(help), std::move(factory)};
  }
  /// For a visitor that is made without anything, and then takes no parameters, or with (VisitContext&).
  template <typename V>
  void add(std::string name, std::string help) {
    add(name, std::move(help),
        [name](visitors::VisitContext& context,
               const visitors::Parameters& parameters) -> Result<std::unique_ptr<visitors::Visitor>> {
          if (!parameters.empty())
            return Status(StatusCode::InvalidArgument, name + " takes no parameters, but got " + parameters[0].name);
          if constexpr (std::is_constructible_v<V, visitors::VisitContext&>) {
            return std::unique_ptr<visitors::Visitor>(new V(context));
          } else {
            return std::unique_ptr<visitors::Visitor>(new V());
          }
        });
  }
  /// By name.
  const std::map<std::string, Entry, std::less<>>& entries() const { return entries_; }

 private:
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace fjord::plugins

/// Defines what the host looks for. Once in a library.
#define FJORD_PLUGIN(registry)                                                     \
  extern "C" {                                                                     \
  extern const std::uint32_t fjord_plugin_interface;                               \
  const std::uint32_t fjord_plugin_interface = ::fjord::plugins::kPluginInterface; \
  void fjord_plugin_register(::fjord::plugins::PluginRegistry& registry);          \
  }                                                                                \
  void fjord_plugin_register([[maybe_unused]] ::fjord::plugins::PluginRegistry& registry)
