#include "fjord/mapreduce/passes.h"

#include <algorithm>
#include <fmt/format.h>
#include <span>
#include <utility>

#include "fjord/document/selection.h"
#include "task/task.h"

namespace fjord::mapreduce {
namespace {

constexpr const char* kDefaultNamespace = "results";

Status invalid_passes(std::string text) { return Status(StatusCode::InvalidArgument, std::move(text)); }

const char* schema_type(ColumnKind kind) {
  switch (kind) {
    case ColumnKind::Integer:
      return "long";
    case ColumnKind::Number:
      return "double";
    case ColumnKind::Bool:
      return "bool";
    case ColumnKind::String:
    case ColumnKind::Json:
      break;
  }
  return "string";
}

bool holds(TypeTag tag, ColumnKind kind) {
  const bool is_number = tag == TypeTag::Double || tag == TypeTag::Float;
  switch (kind) {
    case ColumnKind::Integer:
      return is_number || tag == TypeTag::Long || tag == TypeTag::Int;
    case ColumnKind::Number:
      return is_number;
    case ColumnKind::Bool:
      return tag == TypeTag::Bool;
    case ColumnKind::String:
    case ColumnKind::Json:
      break;
  }
  return tag == TypeTag::String;
}

rpc::RowTarget completed(rpc::RowTarget into, const std::string& job_id) {
  if (into.type.empty()) return {};
  if (into.name_space.empty()) into.name_space = kDefaultNamespace;
  if (into.name.empty()) into.name = job_id;
  return into;
}

Status in_pass(const Status& status, std::size_t pass, std::size_t passes) {
  return passes == 1 ? status : status.with_context(fmt::format("pass {}", pass + 1));
}

/// Checks the target of a pass's rows. Errors: as check_passes().
Status check_target(const PassPlan& plan, const DocumentTypeRepo& types, const std::string& first_type) {
  const rpc::RowTarget& into = plan.pass.into;
  if (into.type.empty()) return Status::ok();
  const DocumentType* type = types.find(into.type);
  if (type == nullptr) {
    return Status(StatusCode::UnknownType, fmt::format("into: there is no document type \"{}\"", into.type));
  }
  if (into.type.starts_with("fjord_"))
    return invalid_passes("into: documents of type " + into.type + " are Fjord's own");
  for (const std::string* name : {&into.name_space, &into.name}) {
    if (!is_plain_name(*name)) {
      return invalid_passes(
          fmt::format("into: namespace and name are 1 to 64 letters, digits, dots, minuses and underscores, "
                      "not \"{}\"",
                      *name));
    }
  }
  if (type->is_a(first_type)) {
    return invalid_passes(fmt::format("into {}: the job reads documents of type {}, so it would read what it puts",
                                      into.type, first_type));
  }
  if (plan.application->columns() == nullptr) {
    return invalid_passes(fmt::format("into: {} computes no rows with columns", plan.pass.application));
  }
  return check_row_target(*plan.application->columns(), *type);
}

/// Plans all passes up to index `last` and returns the last plan. Errors: as check_passes().
Result<PassPlan> plan_passes(const rpc::JobSpec& spec, const std::string& job_id, std::size_t last,
                             const ApplicationRegistry& applications,
                             const std::shared_ptr<const DocumentTypeRepo>& types) {
  std::vector<rpc::JobPass> passes = passes_of(spec);
  PassPlan plan;
  for (std::size_t i = 0; i <= last; ++i) {
    PassPlan next;
    next.pass = std::move(passes.at(i));
    next.pass.into = completed(next.pass.into, job_id);
    next.is_last = i + 1 == passes.size();
    next.types = types;
    if (i > 0) {
      next.reads = plan.pass.into;
      next.reads_rows = next.reads.type.empty();
      const auto* columns = plan.application->columns();
      if (columns != nullptr) next.columns_before = *columns;
      if (next.reads_rows) {
        FJORD_TRY_ASSIGN(next.types, row_types(next.columns_before));
      }
      const std::string read = next.reads_rows ? kRowType : next.reads.type;
      if (!next.pass.document_type.empty() && next.pass.document_type != read) {
        return in_pass(invalid_passes(fmt::format("it reads what the pass before puts, which is of type {}, not {}",
                                                  read, next.pass.document_type)),
                       i, passes.size());
      }
      next.pass.document_type = read;
    }
    const DocumentType* type = next.types->find(next.pass.document_type);
    if (type == nullptr) {
      std::string known;
      for (const auto& other : next.types->types()) known += (known.empty() ? "" : ", ") + other->name();
      return Status(StatusCode::UnknownType,
                    fmt::format("there is no document type \"{}\"; there are: {}", next.pass.document_type, known));
    }
    auto application = applications.create(next.pass.application, next.pass.parameters, *type, next.types.get());
    if (!application) return in_pass(application.error(), i, passes.size());
    next.application = std::move(*application);
    plan.application.reset();  // must be destroyed before its types
    plan = std::move(next);
  }
  return plan;
}

}  // namespace

std::vector<rpc::JobPass> passes_of(const rpc::JobSpec& spec) {
  if (!spec.passes.empty()) return spec.passes;
  return {rpc::JobPass{spec.application, spec.document_type, spec.selection, spec.parameters, {}}};
}

Result<std::shared_ptr<const DocumentTypeRepo>> row_types(const std::vector<AggregateColumn>& columns) {
  std::string schema = fmt::format("document {} {{\n", kRowType);
  for (const AggregateColumn& column : columns) {
    schema += fmt::format("  field {} type {} {{ header }}\n", column.name, schema_type(column.kind));
  }
  if (columns.empty()) schema += "  field key type string { header }\n  field value type string { header }\n";
  schema += "}\n";
  return DocumentTypeRepo::build(std::span(&schema, 1));
}

Status check_row_target(const std::vector<AggregateColumn>& columns, const DocumentType& type) {
  std::string known;
  for (const Field& field : type.fields()) {
    known += fmt::format("{}{} ({})", known.empty() ? "" : ", ", field.name, field.type->name());
  }
  for (const AggregateColumn& column : columns) {
    const Field* field = type.field(column.name);
    if (field == nullptr) {
      return Status(
          StatusCode::InvalidField,
          fmt::format("into {}: there is no field for the column \"{}\"; fields: {}", type.name(), column.name, known));
    }
    if (!holds(field->type->tag(), column.kind)) {
      return Status(StatusCode::InvalidField,
                    fmt::format("into {}: the field {} is of type {}, which does not hold the column {} ({})",
                                type.name(), field->name, field->type->name(), column.name, column.text));
    }
  }
  return Status::ok();
}

Result<PassPlan> plan_pass(const rpc::JobSpec& spec, const std::string& job_id, std::size_t pass,
                           const ApplicationRegistry& applications, std::shared_ptr<const DocumentTypeRepo> types) {
  return plan_passes(spec, job_id, pass, applications, types);
}

Status check_passes(const rpc::JobSpec& spec, const std::string& job_id, const ApplicationRegistry& applications,
                    const std::shared_ptr<const DocumentTypeRepo>& types) {
  const bool is_said_twice =
      !spec.application.empty() || !spec.document_type.empty() || !spec.selection.empty() || !spec.parameters.empty();
  if (!spec.passes.empty() && is_said_twice) {
    return invalid_passes("a job with passes has applications, types, selections and parameters in these only");
  }
  const std::size_t count = passes_of(spec).size();
  if (count > kPassesMax) return invalid_passes(fmt::format("at most {} passes", kPassesMax));
  std::vector<rpc::RowTarget> targets;
  for (std::size_t i = 0; i < count; ++i) {
    FJORD_TRY_ASSIGN(const PassPlan plan, plan_passes(spec, job_id, i, applications, types));
    const auto selection =
        plan.reads_rows ? Selection::parse(plan.pass.selection, *plan.types, *plan.types->find(plan.pass.document_type))
                        : Selection::parse(plan.pass.selection, *plan.types);
    if (!selection) return in_pass(selection.error(), i, count);
    // A pass that restarts, perhaps in another process, must select the same documents; with now() it would not.
    if (count > 1 && selection->needs_now()) {
      return in_pass(invalid_passes("what a job of several passes selects cannot depend on now()"), i, count);
    }
    const std::string first_type = passes_of(spec).front().document_type;
    if (const Status status = check_target(plan, *types, first_type); !status) return in_pass(status, i, count);
    const rpc::RowTarget& into = plan.pass.into;
    if (into.type.empty()) continue;
    if (std::find(targets.begin(), targets.end(), into) != targets.end()) {
      return in_pass(invalid_passes("into " + into.type + ": a pass before puts documents of the same type and name"),
                     i, count);
    }
    targets.push_back(into);
  }
  return Status::ok();
}

bool needs_loading(const rpc::JobSpec& spec, const ApplicationRegistry& applications) {
  const std::vector<rpc::JobPass> passes = passes_of(spec);
  return std::any_of(passes.begin(), passes.end(), [&](const rpc::JobPass& pass) {
    const ApplicationInfo* const info = applications.find(pass.application);
    return info != nullptr && info->needs_loading;
  });
}

Status load_passes(const rpc::JobSpec& spec, const std::string& job_id, const ApplicationRegistry& applications,
                   const std::shared_ptr<const DocumentTypeRepo>& types) {
  const std::size_t count = passes_of(spec).size();
  for (std::size_t i = 0; i < count; ++i) {
    FJORD_TRY_ASSIGN(const PassPlan plan, plan_passes(spec, job_id, i, applications, types));
    if (const Status loaded = plan.application->load(); !loaded) return in_pass(loaded, i, count);
  }
  return Status::ok();
}

Result<std::vector<std::shared_ptr<const AggregatePlan>>> AggregateJob::compile(
    const std::shared_ptr<const DocumentTypeRepo>& types) {
  std::vector<std::shared_ptr<const AggregatePlan>> plans;
  for (std::size_t i = 0; i < passes.size(); ++i) {
    AggregateSpec& spec = passes[i];
    std::shared_ptr<const DocumentTypeRepo> read = types;
    if (i > 0 && !passes[i - 1].into.empty()) {
      spec.type = passes[i - 1].into;
    } else if (i > 0) {
      FJORD_TRY_ASSIGN(read, row_types(plans.back()->columns()));
      spec.type = kRowType;
    }
    auto plan = AggregatePlan::compile(spec, *read);
    if (!plan) return in_pass(plan.error(), i, passes.size());
    plans.push_back(std::move(*plan));
    if (spec.into.empty()) continue;
    const DocumentType* type = types->find(spec.into);
    const Status status = type == nullptr ? Status(StatusCode::UnknownType,
                                                   fmt::format("into: there is no document type \"{}\"", spec.into))
                                          : check_row_target(plans.back()->columns(), *type);
    if (!status) return in_pass(status, i, passes.size());
  }
  return plans;
}

}  // namespace fjord::mapreduce
