#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/document/document_type.h"
#include "fjord/mapreduce/aggregate_spec.h"
#include "fjord/mapreduce/application.h"
#include "fjord/rpc/messages.h"

/// Jobs of several passes: docs/design/0012-chained-passes.md.
namespace fjord::mapreduce {

/// The type of what a pass reads if the one before does not put documents of a type of the cluster: its rows, with a
/// field for each column, or of an application that makes no rows `key` and `value` (JSON), both texts.
inline constexpr const char* kRowType = "row";
inline constexpr std::size_t kPassesMax = 16;

/// The passes of a job, at least one: also of a job that is written without them.
std::vector<rpc::JobPass> passes_of(const rpc::JobSpec& spec);

/// The type kRowType for rows of these columns, and nothing else; no columns: key and value. Errors: InvalidArgument
/// for a column that cannot be the name of a field.
Result<std::shared_ptr<const DocumentTypeRepo>> row_types(const std::vector<AggregateColumn>& columns);

/// Can rows of these columns be documents of `type`? Errors: InvalidField that lists the fields there are.
Status check_row_target(const std::vector<AggregateColumn>& columns, const DocumentType& type);

/// What one pass reads and computes.
struct PassPlan {
  rpc::JobPass pass;                              ///< With everything that the specification left out.
  std::shared_ptr<const DocumentTypeRepo> types;  ///< Of what it reads.
  std::shared_ptr<Application> application;
  bool reads_rows = false;                      ///< Of the pass before; then the type is kRowType.
  std::vector<AggregateColumn> columns_before;  ///< Of these rows; none: key and value.
  rpc::RowTarget reads;                         ///< The documents of the pass before, if it puts some.
  bool is_last = false;
};

/// Pass number `pass` of a job. Errors: those of check_passes().
Result<PassPlan> plan_pass(const rpc::JobSpec& spec, const std::string& job_id, std::size_t pass,
                           const ApplicationRegistry& applications, std::shared_ptr<const DocumentTypeRepo> types);

/// OK if all passes could be run with these types. Errors name the pass, if there are several: UnknownType,
/// InvalidField, InvalidSelection, InvalidArgument.
Status check_passes(const rpc::JobSpec& spec, const std::string& job_id, const ApplicationRegistry& applications,
                    const std::shared_ptr<const DocumentTypeRepo>& types);

/// An aggregation of one or more passes, as it is written.
struct AggregateJob {
  std::vector<AggregateSpec> passes;

  /// What AggregateSpec::from_json() takes, or {"passes": [...]} of such objects, of which only the first has to have a
  /// "type". Errors: InvalidArgument.
  static Result<AggregateJob> from_json(std::string_view json);
  /// The plans of all passes. Fills in the types of all passes but the first. Errors: as AggregatePlan::compile(), with
  /// the pass if there are several; those of check_row_target().
  Result<std::vector<std::shared_ptr<const AggregatePlan>>> compile(
      const std::shared_ptr<const DocumentTypeRepo>& types);
};

}  // namespace fjord::mapreduce
