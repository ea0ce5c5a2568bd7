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

/// The functions that a MapReduce job computes. Applications of Fjord itself and those of plugins
/// (fjord/plugins/plugin.h) implement JobFunctions.
namespace fjord::mapreduce {

/// Receives the tuples of map() and copies their bytes.
class Emitter {
 public:
  virtual ~Emitter() = default;
  virtual void emit(std::string_view key, std::string_view value) = 0;
  /// True: no caller needs the result any more. A long computation may return at once.
  virtual bool cancelled() const { return false; }
};

/// Receives the result of one key, a JSON value as text. emit() is called at most once per key; without a call the key
/// has no result.
class ResultEmitter {
 public:
  virtual ~ResultEmitter() = default;
  virtual void emit(std::string json) = 0;
};

/// Map, combine and reduce. The results must be the same bytes in whatever order documents, tuples and values arrive:
/// Fjord relies on that when it repeats a task on another replica. So map() of a document must not depend on earlier
/// documents.
///
/// Threading: an object is used by one thread at a time. Each task has its own object.
class JobFunctions {
 public:
  virtual ~JobFunctions() = default;

  /// Maps one document. An error or an exception makes the document a dead letter if the job allows dead letters, and
  /// fails the job otherwise. Tuples that were emitted for a failed document are dropped.
  virtual Status map(const DocumentView& document, Emitter& emitter) = 0;
  /// Merges `value` into `into`, both values of `key`, and returns true; or returns false and leaves `into` unchanged.
  virtual bool combine(std::string_view /*key*/, std::string& /*into*/, std::string_view /*value*/) { return false; }
  /// Reduces all values of a key, which are sorted by their bytes. An error fails the job.
  virtual Status reduce(std::string_view key, std::span<const std::string_view> values, ResultEmitter& result) = 0;
  /// False: map() gets documents without their body parts, which are then not read.
  virtual bool needs_body() const { return true; }
};

struct ParameterInfo {
  std::string name;
  std::string help;
  std::optional<std::string> default_value;  ///< Absent: the parameter is required.
};

/// The parameters of a job, checked against those that the application declares; defaults are filled in.
class ApplicationParameters {
 public:
  using Values = std::map<std::string, std::string, std::less<>>;

  explicit ApplicationParameters(Values values, const DocumentTypeRepo* types = nullptr)
      : values_(std::move(values)), types_(types) {}
  /// Returns the value as text. The application must have declared `name`.
  const std::string& text(std::string_view name) const;
  /// Returns the value as an integer. Errors: InvalidArgument if it is not an integer from `min` to `max`.
  Result<std::int64_t> integer(std::string_view name, std::int64_t min, std::int64_t max) const;
  /// All document types of the cluster, or the type of the rows if the application reads rows of another pass. Null if
  /// the caller that makes the application does not know the types.
  const DocumentTypeRepo* types() const { return types_; }
  const Values& values() const { return values_; }

 private:
  Values values_;
  const DocumentTypeRepo* types_;
};

/// Returns the field `name` of `type` if it holds a single string, number or bool, which can be a key. Errors:
/// InvalidField that lists the suitable fields.
Result<const Field*> scalar_field(const DocumentType& type, std::string_view name);
/// Returns the field `name` of `type` if it holds a number. Errors: InvalidField that lists the suitable fields.
Result<const Field*> number_field(const DocumentType& type, std::string_view name);
/// Returns the value as text: strings unchanged, numbers in the shortest form that parses back to the same value, bools
/// as true or false. The view points into the document or into `scratch`.
std::string_view scalar_text(const FieldSlice& slice, std::string& scratch);

}  // namespace fjord::mapreduce
