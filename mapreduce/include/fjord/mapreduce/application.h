#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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
  explicit ApplicationParameters(std::map<std::string, std::string, std::less<>> values) : values_(std::move(values)) {}
  /// The name is one that the application declares.
  const std::string& text(std::string_view name) const;
  /// Errors: InvalidArgument if it is no integer from `min` to `max`.
  Result<std::int64_t> integer(std::string_view name, std::int64_t min, std::int64_t max) const;

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

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
                                              const DocumentType& type) const;

 private:
  std::map<std::string, ApplicationInfo, std::less<>> applications_;
};

/// noop, heavycpu, citycount, heavycity, fieldstats.
void add_builtin_applications(ApplicationRegistry& registry);

/// A field of `type` with a single value that makes sense as a key: string, number or bool. Errors: InvalidField that
/// lists the fields there are.
Result<const Field*> scalar_field(const DocumentType& type, std::string_view name);
/// A field of `type` that holds a number. Errors: InvalidField.
Result<const Field*> number_field(const DocumentType& type, std::string_view name);
/// The value as text: strings as they are, numbers in the shortest form that reads back the same, true or false. The
/// view points into the document or into `scratch`.
std::string_view scalar_text(const FieldSlice& slice, std::string& scratch);

}  // namespace fjord::mapreduce
