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

#include "fjord/common/result.h"
#include "fjord/document/document.h"
#include "fjord/document/document_type.h"
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

/// Takes the tuples of map. The bytes are copied.
class Emitter {
 public:
  virtual ~Emitter() = default;
  virtual void emit(std::string_view key, std::string_view value) = 0;
  /// Nobody wants the result any more: a long computation may return at once.
  virtual bool cancelled() const { return false; }
};

/// Takes the result of one key: a JSON value as text. At most once a key; none: the key has no result.
class ResultEmitter {
 public:
  virtual ~ResultEmitter() = default;
  virtual void emit(std::string json) = 0;
};

/// The parameters of a job, checked against what the application declares; defaults are filled in.
class ApplicationParameters {
 public:
  explicit ApplicationParameters(std::map<std::string, std::string, std::less<>> values,
                                 const DocumentTypeRepo* types = nullptr)
      : values_(std::move(values)), types_(types) {}
  /// The name is one that the application declares.
  const std::string& text(std::string_view name) const;
  /// Errors: InvalidArgument if it is no integer from `min` to `max`.
  Result<std::int64_t> integer(std::string_view name, std::int64_t min, std::int64_t max) const;
  /// All types of the cluster; null if whoever makes the application does not know them.
  const DocumentTypeRepo* types() const { return types_; }

 private:
  std::map<std::string, std::string, std::less<>> values_;
  const DocumentTypeRepo* types_;
};

class Accumulator;
struct AggregateColumn;

/// One object a task. Whatever order documents, tuples and values come in, the results must be the same bytes: Fjord
/// relies on that when it repeats a task on another replica.
///
/// Threading: confined to the executor of its task.
class Application {
 public:
  virtual ~Application() = default;

  /// Before anything else; `type` is that of the input documents and outlives this object. Also called when a job is
  /// submitted, so an error (InvalidArgument, InvalidField) is the answer to that.
  virtual Status configure(const ApplicationParameters& parameters, const DocumentType& type) = 0;
  /// An error fails the job, with the id of the document.
  virtual Status map(const DocumentView& document, Emitter& emitter) = 0;
  /// Merges `value` into `into`, both of the same key, and returns true; or returns false and leaves both as they are.
  virtual bool combine(std::string_view /*key*/, std::string& /*into*/, std::string_view /*value*/) { return false; }
  /// All values of a key, in rising order of their bytes. An error fails the job.
  virtual Status reduce(std::string_view key, std::span<const std::string_view> values, ResultEmitter& result) = 0;

  /// False: map() is given documents without their body parts, which are not read then. After configure().
  virtual bool needs_body() const { return true; }
  /// True: results are rows of an aggregation, which belong to whoever asked and not into the store.
  virtual bool is_aggregation() const { return false; }
  /// Something that takes documents in place of map() and combine(), for applications of Fjord itself; null: nothing.
  virtual std::unique_ptr<Accumulator> make_accumulator();
  /// The columns of its results, if these are rows: JSON arrays with a value for each. Null: they are not.
  virtual const std::vector<AggregateColumn>* columns() const { return nullptr; }
  /// True: arrange() cuts results off, so that which there are follows from all of them.
  virtual bool is_limited() const { return false; }
  /// A key as people and documents are shown it; different keys stay different.
  virtual Result<std::string> key_text(std::string_view key) const { return std::string(key); }
  /// Sorts and cuts all results of a job (key and value), where that is part of what was asked for.
  virtual Status arrange(std::vector<std::pair<std::string, std::string>>& /*results*/) const { return Status::ok(); }
};

struct ParameterInfo {
  std::string name;
  std::string help;
  std::optional<std::string> default_value;  ///< Absent: the parameter must be given.
};

struct ApplicationInfo {
  std::string name;
  std::string help;  ///< For users: what it computes and what a result looks like.
  std::vector<ParameterInfo> parameters;
  std::function<std::unique_ptr<Application>()> make;
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

/// A field of `type` with a single value that makes sense as a key: string, number or bool. Errors: InvalidField that
/// lists the fields there are.
Result<const Field*> scalar_field(const DocumentType& type, std::string_view name);
/// A field of `type` that holds a number. Errors: InvalidField.
Result<const Field*> number_field(const DocumentType& type, std::string_view name);
/// The value as text: strings as they are, numbers in the shortest form that reads back the same, true or false. The
/// view points into the document or into `scratch`.
std::string_view scalar_text(const FieldSlice& slice, std::string& scratch);

}  // namespace fjord::mapreduce
