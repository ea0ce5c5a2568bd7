#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "fjord/mapreduce/job_functions.h"
#include "fjord/visitors/visitor.h"

/// The header that a library of visitors or MapReduce applications includes. A complete library with a visitor:
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
/// A complete library with an application, which computes the length of the longest text of each city:
///
///     class Longest final : public fjord::mapreduce::JobFunctions {
///      public:
///       explicit Longest(const fjord::plugins::ApplicationContext& context)
///           : city_(context.type.field("city")), text_(context.type.field("text")) {}
///       fjord::Status map(const fjord::DocumentView& document, fjord::mapreduce::Emitter& emitter) override {
///         const auto city = document.field(*city_), text = document.field(*text_);
///         if (city && text) emitter.emit(city->as_string_view(), std::to_string(text->as_string_view().size()));
///         return fjord::Status::ok();
///       }
///       bool combine(std::string_view, std::string& into, std::string_view value) override {
///         if (number(into) < number(value)) into = value;
///         return true;
///       }
///       fjord::Status reduce(std::string_view, std::span<const std::string_view> values,
///                            fjord::mapreduce::ResultEmitter& result) override {
///         int longest = 0;
///         for (const std::string_view value : values) longest = std::max(longest, number(value));
///         result.emit(std::to_string(longest));
///         return fjord::Status::ok();
///       }
///      private:
///       static int number(std::string_view text) { return std::stoi(std::string(text)); }
///       const fjord::Field* city_;
///       const fjord::Field* text_;
///     };
///
///     FJORD_PLUGIN(registry) { registry.add_application<Longest>("longest", "1", "The longest text of each city"); }
///
/// (A real application has a factory that checks that the fields exist: examples/plugin/word_count.cpp.)
///
/// To build it against an installed Fjord:
///
///     find_package(fjord REQUIRED)
///     fjord_add_plugin(count SOURCES count.cpp)
///
/// A node runs each visitor, and each task of an application, in a process of its own (fjord-plugin-host). If the
/// library throws, loops, leaks or crashes, this ends only its visit or fails only its document, with an error that
/// names the cause.
namespace fjord::plugins {

/// Version of this header and all that it includes. A node refuses libraries of another version.
inline constexpr std::uint32_t kPluginInterface = 2;

/// Arguments of an application's factory. Lifetime: outlives the application.
struct ApplicationContext {
  const DocumentType& type;  ///< Type of the documents passed to map().
  const mapreduce::ApplicationParameters& parameters;
};

/// Errors (InvalidArgument, InvalidField) are the answer to the submission of the job.
using ApplicationFactory =
    std::function<Result<std::unique_ptr<mapreduce::JobFunctions>>(const ApplicationContext& context)>;

/// The visitors and applications that a library offers. Threading: one thread, that of the host.
class PluginRegistry {
 public:
  struct ApplicationEntry {
    /// Must change whenever the results, or the values between map and reduce, change. All nodes of a job need the same
    /// version.
    std::string version;
    std::string help;
    std::vector<mapreduce::ParameterInfo> parameters;
    ApplicationFactory factory;
  };
  struct Entry {
    std::string help;
    visitors::VisitorFactory factory;
  };

  /// Adds a visitor; a later one replaces an earlier one of the same name. `name` is the name in `fjord visit
  /// --visitor` and createVisitor.
  void add(std::string name, std::string help, visitors::VisitorFactory factory) {
    entries_[std::move(name)] = Entry{std::move(help), std::move(factory)};
  }
  /// Adds a visitor with a constructor that takes nothing or (VisitContext&). The visitor accepts no parameters.
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
  /// Adds an application. `name` is the name in `fjord job run` and submitJob.
  void add_application(std::string name, ApplicationEntry entry) { applications_[std::move(name)] = std::move(entry); }
  /// Adds an application with a constructor that takes nothing or (const ApplicationContext&).
  template <typename A>
  void add_application(std::string name, std::string version, std::string help,
                       std::vector<mapreduce::ParameterInfo> parameters = {}) {
    add_application(std::move(name),
                    {std::move(version), std::move(help), std::move(parameters), [](const ApplicationContext& context) {
                       std::unique_ptr<mapreduce::JobFunctions> made;
                       if constexpr (std::is_constructible_v<A, const ApplicationContext&>) {
                         made = std::make_unique<A>(context);
                       } else {
                         made = std::make_unique<A>();
                       }
                       return Result<std::unique_ptr<mapreduce::JobFunctions>>(std::move(made));
                     }});
  }

  /// Visitors by name.
  const std::map<std::string, Entry, std::less<>>& entries() const { return entries_; }
  const std::map<std::string, ApplicationEntry, std::less<>>& applications() const { return applications_; }

 private:
  std::map<std::string, Entry, std::less<>> entries_;
  std::map<std::string, ApplicationEntry, std::less<>> applications_;
};

}  // namespace fjord::plugins

/// Defines the symbols that the host looks up. A library uses it exactly once.
#define FJORD_PLUGIN(registry)                                                     \
  extern "C" {                                                                     \
  extern const std::uint32_t fjord_plugin_interface;                               \
  const std::uint32_t fjord_plugin_interface = ::fjord::plugins::kPluginInterface; \
  void fjord_plugin_register(::fjord::plugins::PluginRegistry& registry);          \
  }                                                                                \
  void fjord_plugin_register([[maybe_unused]] ::fjord::plugins::PluginRegistry& registry)
