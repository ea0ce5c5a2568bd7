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
#include "fjord/document/value_expression.h"
#include "fjord/mapreduce/job_functions.h"
#include "fjord/rpc/common_messages.h"

/// The interface of a MapReduce application. A complete application that counts documents by city:
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
/// (The built-in citycount also has combine(), so that a task sends one tuple per city instead of one per document.)
namespace fjord::mapreduce {

class Accumulator;
class JobRows;
struct AggregateColumn;

/// A key with its values.
struct KeyedValues {
  std::string_view key;
  std::span<const std::string_view> values;
};

/// The outcome of mapping the first documents of a batch, at least one of them.
struct MappedDocuments {
  struct Failed {
    std::size_t document = 0;
    Status why;
  };
  std::size_t documents = 0;   ///< Number of documents that were processed.
  std::vector<Failed> failed;  ///< Documents that map() failed on, by rising index.
  std::uint64_t tuples = 0;    ///< Tuples emitted for documents that did not fail, before combining.
  std::string emitted;         ///< Keys and values alternately, each as put_string() writes it, in any order.
  /// map_apart() only: for each document, the position in `emitted` where its tuples end. They begin where those of the
  /// document before it end.
  std::vector<std::size_t> ends = {};

  /// put_apart() appends `ends` and `emitted` to `out`. take_apart() reads them back from the rest of `in`, for
  /// `documents` documents, and returns false if the bytes are malformed.
  void put_apart(std::string& out) const;
  bool take_apart(ByteReader& in);
};

/// The functions of an application that runs in another process. A call to it costs more than most functions compute,
/// so each call takes many documents or keys. Otherwise these functions are those of JobFunctions.
class BatchFunctions {
 public:
  virtual ~BatchFunctions() = default;

  /// Maps documents from the beginning of `documents`, as many as make a good batch; the caller passes the others
  /// again. Tuples of one key may already be combined. Errors: those of the task. A failure of a single document is in
  /// MappedDocuments::failed.
  virtual Result<MappedDocuments> map(std::span<const DocumentView> documents,
                                      const std::function<bool()>& cancelled) = 0;
  /// As map(), but the tuples of each document are separate and not combined. The default maps one document per call.
  virtual Result<MappedDocuments> map_apart(std::span<const DocumentView> documents,
                                            const std::function<bool()>& cancelled);
  /// Merges the values of each key as far as the application can, and passes the remaining ones to `on_value(index,
  /// value)`, by rising index of the key.
  virtual Status combine(std::span<const KeyedValues> keys,
                         const std::function<void(std::size_t, std::string_view)>& on_value) = 0;
  /// Returns the result of each key, or nothing for a key without a result. Errors: those of JobFunctions::reduce(),
  /// with the key.
  virtual Result<std::vector<std::optional<std::string>>> reduce(std::span<const KeyedValues> keys) = 0;
};

/// The functions of an application whose map() takes nothing of a document but a few values. The engine keeps these
/// values in columns, so that a later job need not read the documents (docs/design/0024-columns.md).
class ValueFunctions {
 public:
  virtual ~ValueFunctions() = default;

  /// What map() takes of a document.
  virtual std::span<const ValueExpression> values() const = 0;
  /// Emits what map() emits for a document with these values, one for each of values(). Floating-point numbers that are
  /// integers come as integers. What is emitted depends on the values alone, and map() fails on no document.
  virtual void map_values(std::span<const ScalarView> values, Emitter& emitter) = 0;
};

/// An application as the job engine runs it: the functions of a job, and questions about them. Each task has its own
/// object.
///
/// Threading: confined to the executor of its task.
class Application : public JobFunctions {
 public:
  /// Called before any other function. `type` is the type of the input documents and outlives this object. The job
  /// service also calls it when a job is submitted and answers the submission with its error (InvalidArgument,
  /// InvalidField).
  virtual Status configure(const ApplicationParameters& parameters, const DocumentType& type) = 0;
  /// Runs what of the submitter's program runs before its first function, and returns what is wrong with it. Takes up
  /// to some seconds, so the job service calls it on a thread that does nothing else. Other functions load what they
  /// need themselves. Errors: InvalidArgument, IoError, Busy.
  virtual Status load() { return Status::ok(); }

  /// True: results are rows of an aggregation. By default they are returned to the caller and not stored.
  virtual bool is_aggregation() const { return false; }
  /// Makes an accumulator that takes documents in place of map() and combine(); only for applications of Fjord itself.
  /// Null: the engine calls map() and combine().
  virtual std::unique_ptr<Accumulator> make_accumulator();
  /// The columns of the results, if the results are rows (JSON arrays with one value per column). Null: they are not
  /// rows.
  virtual const std::vector<AggregateColumn>* columns() const { return nullptr; }
  /// True: arrange() drops results, so the final results are known only when all results are there.
  virtual bool is_limited() const { return false; }
  /// A tuple whose key has a result even if no documents were read, such as a count of all documents. Merging it with
  /// other tuples of the key changes nothing. nullopt: there are no results without documents.
  virtual std::optional<std::pair<std::string, std::string>> tuple_of_nothing() const { return std::nullopt; }
  /// Returns the functions in batch form, if the application prefers that; they live as long as this object. Null: the
  /// functions are called for one document or key at a time.
  virtual BatchFunctions* batches() { return nullptr; }
  /// Returns the functions for values, if map() needs no more than these; they live as long as this object. Null: map()
  /// needs documents.
  virtual ValueFunctions* by_values() { return nullptr; }
  /// The text of a key for users and result documents. Different keys have different texts.
  virtual Result<std::string> key_text(std::string_view key) const { return std::string(key); }
  /// Sorts all results of a job and drops those beyond the limit, if the application has a limit.
  virtual Status arrange(JobRows& /*results*/) const { return Status::ok(); }
};

/// An application that works in batches. A single document or key is a batch of one.
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
  std::string help;  ///< Text for users: what the application computes and what a result looks like.
  std::vector<ParameterInfo> parameters;
  std::function<std::unique_ptr<Application>()> make;
  /// Version of an application that does not come with Fjord: all nodes of a job must have the same. Empty: built in.
  std::string version = {};
  bool needs_loading = false;  ///< Application::load() has something to do.
};

/// The applications that a process knows. Threading: filled before it is shared; readable from any thread after that.
class ApplicationRegistry {
 public:
  /// Adds an application; no other may have its name.
  void add(ApplicationInfo info);
  /// Returns null if there is none.
  const ApplicationInfo* find(std::string_view name) const;
  /// Sorted by name.
  std::vector<const ApplicationInfo*> all() const;
  /// OK if the application is unknown here or has this version. Errors: InvalidArgument that names both versions.
  Status check_version(std::string_view name, std::string_view version) const;
  /// Returns a configured application. Errors: InvalidArgument if the application is unknown, or a parameter is
  /// unknown, missing or given twice (the message lists the known ones); errors of configure().
  Result<std::unique_ptr<Application>> create(std::string_view name, const std::vector<rpc::Parameter>& parameters,
                                              const DocumentType& type, const DocumentTypeRepo* types = nullptr) const;

 private:
  std::map<std::string, ApplicationInfo, std::less<>> applications_;
};

/// Adds noop, heavycpu, citycount, heavycity, fieldstats and aggregate.
void add_builtin_applications(ApplicationRegistry& registry);

}  // namespace fjord::mapreduce
