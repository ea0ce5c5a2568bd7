#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fjord/common/coding.h"
#include "fjord/common/result.h"
#include "fjord/document/document_type.h"
#include "fjord/mapreduce/job_functions.h"
#include "fjord/rpc/messages.h"

/// What a MapReduce application implements. The whole of one that counts documents by city:
///
///     class CityCount final : public Application {
///      public:
///       Status configure(const ApplicationParameters& parameters, const DocumentType& type) override {
///         FJORD_TRY_ASSIGN(city_, scalar_field(type, parameters.text("field")));
///         return Status::ok();
///       }
///       Status map(const DocumentView& document, Emitter& emitter) override {
///         if (const auto city = document.field(*city_)) emitter.emit(scalar_text(*city, scratch_), "1");
///         return Status::ok();
///       }
///       Status reduce(std::string_view, std::span<const std::string_view> values, ResultEmitter& result) override {
///         result.emit(std::to_string(values.size()));
///         return Status::ok();
///       }
///      private:
///       const Field* city_ = nullptr;
///       std::string scratch_;
///     };
///
/// (citycount itself adds combine(), so that a task sends one tuple a city instead of one a document.)
namespace fjord::mapreduce {

class Accumulator;
struct AggregateColumn;

/// A key with its values.
struct KeyedValues {
  std::string_view key;
  std::span<const std::string_view> values;
};

/// What became of the first documents of those that were given.
struct MappedDocuments {
  struct Failed {
    std::size_t document = 0;
    Status why;
  };
  std::size_t documents = 0;   ///< So many; at least one.
  std::vector<Failed> failed;  ///< By rising number.
  std::uint64_t tuples = 0;    ///< Emitted by the others, before they were combined.
  std::string emitted;         ///< Keys and values in turn, as put_string() writes them, in any order.
  /// Of map_apart(): where in `emitted` the tuples of each document end, which follow those of the one before.
  std::vector<std::size_t> ends = {};

  /// Appends `ends` and `emitted`, and takes them again: all that is left of `in`. False if that is malformed.
  void put_apart(std::string& out) const;
  bool take_apart(ByteReader& in);
};

/// The functions of an application that runs in another process, where a call costs more than what most of them
/// compute: for many documents or keys at a time. The same as JobFunctions otherwise.
class BatchFunctions {
 public:
  virtual ~BatchFunctions() = default;

  /// As many documents as make a good batch; the others are given again. Tuples of a key may come combined. Errors:
  /// those of the task; what tells of a document is in `failed`.
  virtual Result<MappedDocuments> map(std::span<const DocumentView> documents,
                                      const std::function<bool()>& cancelled) = 0;
  /// The same with the tuples of each document by themselves, and not combined. Unless it is overridden, of one
  /// document.
  virtual Result<MappedDocuments> map_apart(std::span<const DocumentView> documents,
                                            const std::function<bool()>& cancelled);
  /// Merges the values of each key as far as the application does, and gives what is left to `on_value(index, value)`,
  /// by rising index.
  virtual Status combine(std::span<const KeyedValues> keys,
                         const std::function<void(std::size_t, std::string_view)>& on_value) = 0;
  /// The result of each key, if it has one. Errors: those of JobFunctions::reduce(), with the key.
  virtual Result<std::vector<std::optional<std::string>>> reduce(std::span<const KeyedValues> keys) = 0;
};

/// What the engine runs: the functions of a job, and what it may ask about them. One object a task.
///
/// Threading: confined to the executor of its task.
class Application : public JobFunctions {
 public:
  /// Before anything else; `type` is that of the input documents and outlives this object. Also called when a job is
  /// submitted, so an error (InvalidArgument, InvalidField) is the answer to that.
  virtual Status configure(const ApplicationParameters& parameters, const DocumentType& type) = 0;

  /// True: results are rows of an aggregation, which belong to whoever asked and not into the store.
  virtual bool is_aggregation() const { return false; }
  /// Something that takes documents in place of map() and combine(), for applications of Fjord itself; null: nothing.
  virtual std::unique_ptr<Accumulator> make_accumulator();
  /// The columns of its results, if these are rows: JSON arrays with a value for each. Null: they are not.
  virtual const std::vector<AggregateColumn>* columns() const { return nullptr; }
  /// True: arrange() cuts results off, so that which there are follows from all of them.
  virtual bool is_limited() const { return false; }
  /// A tuple that there is whatever was read: reduce() gives a result for its key even of no documents. Merging it with
  /// others of the key changes nothing. Nothing: of no documents there are no results.
  virtual std::optional<std::pair<std::string, std::string>> tuple_of_nothing() const { return std::nullopt; }
  /// The same functions for many at a time, if that is better; null: they are called one by one. Lives as long as this.
  virtual BatchFunctions* batches() { return nullptr; }
  /// A key as people and documents are shown it; different keys stay different.
  virtual Result<std::string> key_text(std::string_view key) const { return std::string(key); }
  /// Sorts and cuts all results of a job (key and value), where that is part of what was asked for.
  virtual Status arrange(std::vector<std::pair<std::string, std::string>>& /*results*/) const { return Status::ok(); }
};

/// One that works in batches; a single document or key is a batch of one.
class BatchApplication : public Application, public BatchFunctions {
 public:
  using BatchFunctions::map;
  using BatchFunctions::reduce;

  BatchFunctions* batches() final { return this; }
  Status map(const DocumentView& document, Emitter& emitter) final;
  Status reduce(std::string_view key, std::span<const std::string_view> values, ResultEmitter& result) final;
};

struct ApplicationInfo {
  std::string name;
  std::string help;  ///< For users: what it computes and what a result looks like.
  std::vector<ParameterInfo> parameters;
  std::function<std::unique_ptr<Application>()> make;
  /// Of an application that does not come with Fjord: all nodes of a job must have the same. Empty: it is built in.
  std::string version = {};
};

/// The applications that a process knows. Filled before it is shared; read from every thread after that.
class ApplicationRegistry {
 public:
  /// A name is given once.
  void add(ApplicationInfo info);
  /// Null if there is none.
  const ApplicationInfo* find(std::string_view name) const;
  /// By name.
  std::vector<const ApplicationInfo*> all() const;
  /// That an application that is known has this version. Errors: InvalidArgument that names both.
  Status check_version(std::string_view name, std::string_view version) const;
  /// A configured application. Errors: InvalidArgument for an unknown application, an unknown, missing or ill-formed
  /// parameter (the message lists those there are); what configure() says.
  Result<std::unique_ptr<Application>> create(std::string_view name, const std::vector<rpc::Parameter>& parameters,
                                              const DocumentType& type, const DocumentTypeRepo* types = nullptr) const;

 private:
  std::map<std::string, ApplicationInfo, std::less<>> applications_;
};

/// Wrong on purpose, so that tests can be seen to notice it.
struct ApplicationSabotage {
  bool average_of_averages = false;  ///< Aggregation: averages are merged as if each had the same number of values.
  bool forget_null_groups = false;   ///< Aggregation: documents without a value of the key are left out.
};

/// noop, heavycpu, citycount, heavycity, fieldstats, aggregate.
void add_builtin_applications(ApplicationRegistry& registry, ApplicationSabotage sabotage = {});

}  // namespace fjord::mapreduce
