#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "fjord/common/result.h"
#include "fjord/document/document.h"
#include "fjord/document/document_type.h"

/// What a MapReduce job computes, whoever wrote it: applications of Fjord itself and those of plugins
/// (fjord/plugins/plugin.h) implement JobFunctions.
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

/// Map, combine and reduce. Whatever order documents, tuples and values come in, the results must be the same bytes:
/// Fjord relies on that when it repeats a task on another replica. So what map() does with a document does not depend
/// on the documents before it.
///
/// Threading: an object is used by one thread at a time. There is one a task.
class JobFunctions {
 public:
  virtual ~JobFunctions() = default;

  /// An error, or an exception, makes the document a dead letter if the job allows any, and else fails the job. What
  /// was emitted for it does not count then.
  virtual Status map(const DocumentView& document, Emitter& emitter) = 0;
  /// Merges `value` into `into`, both of the same key, and returns true; or returns false and leaves both as they are.
  virtual bool combine(std::string_view /*key*/, std::string& /*into*/, std::string_view /*value*/) { return false; }
  /// All values of a key, in rising order of their bytes. An error fails the job.
  virtual Status reduce(std::string_view key, std::span<const std::string_view> values, ResultEmitter& result) = 0;
  /// False: map() is given documents without their body parts, which are not read then.
  virtual bool needs_body() const { return true; }
};

/// A parameter that an application declares.
struct ParameterInfo {
  std::string name;
  std::string help;
  std::optional<std::string> default_value;  ///< Absent: the parameter must be given.
};

/// The parameters of a job, checked against what the application declares; defaults are filled in.
class ApplicationParameters {
 public:
  using Values = std::map<std::string, std::string, std::less<>>;

  explicit ApplicationParameters(Values values, const DocumentTypeRepo* types = nullptr)
      : values_(std::move(values)), types_(types) {}
  /// The name is one that the application declares.
  const std::string& text(std::string_view name) const;
  /// Errors: InvalidArgument if it is no integer from `min` to `max`.
  Result<std::int64_t> integer(std::string_view name, std::int64_t min, std::int64_t max) const;
  /// All types of the cluster, or, where rows of another pass are read, that of the rows; null if whoever makes the
  /// application does not know them.
  const DocumentTypeRepo* types() const { return types_; }
  const Values& values() const { return values_; }

 private:
  Values values_;
  const DocumentTypeRepo* types_;
};

/// A field of `type` with a single value that makes sense as a key: string, number or bool. Errors: InvalidField that
/// lists the fields there are.
Result<const Field*> scalar_field(const DocumentType& type, std::string_view name);
/// A field of `type` that holds a number. Errors: InvalidField.
Result<const Field*> number_field(const DocumentType& type, std::string_view name);
/// The value as text: strings as they are, numbers in the shortest form that reads back the same, true or false. The
/// view points into the document or into `scratch`.
std::string_view scalar_text(const FieldSlice& slice, std::string& scratch);

}  // namespace fjord::mapreduce
