#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/document/document_type.h"
#include "fjord/mapreduce/aggregate_spec.h"
#include "fjord/mapreduce/application.h"
#include "fjord/rpc/job_messages.h"

/// Jobs of several passes: docs/design/0012-chained-passes.md.
namespace fjord::mapreduce {

/// The document type of the rows that a pass reads if the pass before it does not put documents. It has one field per
/// column; rows of an application without columns have the text fields `key` and `value` (JSON).
inline constexpr const char* kRowType = "row";
inline constexpr std::size_t kPassesMax = 16;

/// The passes of a job, at least one. A job that is written without passes has one.
std::vector<rpc::JobPass> passes_of(const rpc::JobSpec& spec);

/// A repository with only the type kRowType for rows of these columns. No columns: key and value. Errors:
/// InvalidArgument if a column cannot be the name of a field.
Result<std::shared_ptr<const DocumentTypeRepo>> row_types(const std::vector<AggregateColumn>& columns);

/// OK if rows of these columns can be stored as documents of `type`. Errors: InvalidField that lists the fields of the
/// type.
Status check_row_target(const std::vector<AggregateColumn>& columns, const DocumentType& type);

/// The plan of one pass: its input and its application.
struct PassPlan {
  rpc::JobPass pass;                              ///< The pass as specified, with defaults filled in.
  std::shared_ptr<const DocumentTypeRepo> types;  ///< Types of the documents that the pass reads.
  std::shared_ptr<Application> application;
  bool reads_rows = false;  ///< The pass reads rows of the pass before it; then its type is kRowType.
  std::vector<AggregateColumn> columns_before;  ///< Columns of the rows that are read; empty: key and value.
  rpc::RowTarget reads;                         ///< Documents that the pass before it puts, if it puts any.
  bool is_last = false;
};

/// Plans the pass with index `pass` of a job. Errors: those of check_passes().
Result<PassPlan> plan_pass(const rpc::JobSpec& spec, const std::string& job_id, std::size_t pass,
                           const ApplicationRegistry& applications, std::shared_ptr<const DocumentTypeRepo> types);

/// OK if all passes can run with these types. Errors: UnknownType, InvalidField, InvalidSelection, InvalidArgument; the
/// message names the pass if there are several.
Status check_passes(const rpc::JobSpec& spec, const std::string& job_id, const ApplicationRegistry& applications,
                    const std::shared_ptr<const DocumentTypeRepo>& types);

/// Calls Application::load() for each pass that needs_loading() is about; all passes are to have passed check_passes().
/// Errors: those of check_passes() and of load(); the message names the pass if there are several.
Status load_passes(const rpc::JobSpec& spec, const std::string& job_id, const ApplicationRegistry& applications,
                   const std::shared_ptr<const DocumentTypeRepo>& types);
/// True if load_passes() has something to do.
bool needs_loading(const rpc::JobSpec& spec, const ApplicationRegistry& applications);

/// An aggregation of one or more passes, as the user wrote it.
struct AggregateJob {
  std::vector<AggregateSpec> passes;

  /// Parses the JSON of AggregateSpec::from_json(), or {"passes": [...]} with an array of such objects. Only the first
  /// of these needs a "type". Errors: InvalidArgument.
  static Result<AggregateJob> from_json(std::string_view json);
  /// Returns the plans of all passes, and sets the types of all passes but the first. Errors: as
  /// AggregatePlan::compile(), with the pass if there are several; those of check_row_target().
  Result<std::vector<std::shared_ptr<const AggregatePlan>>> compile(
      const std::shared_ptr<const DocumentTypeRepo>& types);
};

}  // namespace fjord::mapreduce
